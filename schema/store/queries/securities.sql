select symbol, source, id, security_ref, revision, action, observed_at, line, encode(frame, 'hex') as frame,
       record::text as record
from observations
where kind = 'security'
