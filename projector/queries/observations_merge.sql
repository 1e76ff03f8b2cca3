insert into observations as f
  (symbol, kind, source, key, content, id, security_ref, revision, action, observed_at, line, frame, record)
select distinct on (symbol, kind, source, key, content)
  symbol, kind, source, key, content, id, security_ref, revision, action, observed_at, line, frame, record
from staged_observations
order by symbol, kind, source, key, content, observed_at desc, line desc, frame desc
on conflict (symbol, kind, source, key, content) do update
set observed_at = excluded.observed_at, line = excluded.line, frame = excluded.frame, security_ref = excluded.security_ref
where (excluded.observed_at, excluded.line, excluded.frame) > (f.observed_at, f.line, f.frame)
