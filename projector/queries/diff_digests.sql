-- {a} and {b} schemas of the compared generations, $1 securities or null. Digests of the tables of each security.
-- Securities whose tables were copied from another generation have no digests.
select symbol, a.symbol is not null as in_a, b.symbol is not null as in_b, a.tables as a, b.tables as b
from (
  select i.symbol, d.tables from {a}.identities i left join {a}.digests d using (symbol)
  where $1::text[] is null or i.symbol = any ($1)
) a
full join (
  select i.symbol, d.tables from {b}.identities i left join {b}.digests d using (symbol)
  where $1::text[] is null or i.symbol = any ($1)
) b using (symbol)
order by symbol
