-- Ids that more than one symbol has had.
select digest, array_agg(symbol) as symbols
from record_ids
where digest = any ($1)
group by digest
having count(*) > 1
