select symbol, kind, source, id, security_ref, revision, action, observed_at, line, encode(frame, 'hex') as frame,
       record::text as record
from observations
where symbol = any ($1) and kind not in ('security', 'session')
