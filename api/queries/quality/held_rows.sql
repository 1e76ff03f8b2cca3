-- Quarantined rows by feed, kind and reason, most frequent first.
select q.source, q.kind, q.reason, count(*) as rows, count(distinct q.symbol) as securities, min(q.symbol) as example
from quarantine q group by q.source, q.kind, q.reason order by count(*) desc, q.source, q.kind, q.reason limit 100
