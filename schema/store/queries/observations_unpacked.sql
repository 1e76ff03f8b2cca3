declare unpacked no scroll cursor for
select symbol, kind, source, id, security_ref, revision, action, observed_at, line, frame, record::text as record
from observations_unpacked
order by symbol, kind, source
