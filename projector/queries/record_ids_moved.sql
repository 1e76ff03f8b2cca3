-- Ids with more than one symbol.
select digest, array_agg(symbol) as symbols
from record_ids
where digest = any ($1)
group by digest
having count(*) > 1
