-- {a} and {b} schemas of the compared generations, $1 securities or null, $2 first year or null, $3 true to include
-- years with equal digests. Years of prices to compare.
select symbol, year
from (
  select symbol, year, digest from {a}.prices
  where ($1::text[] is null or symbol = any ($1)) and ($2::integer is null or year >= $2)
) a
full join (
  select symbol, year, digest from {b}.prices
  where ($1::text[] is null or symbol = any ($1)) and ($2::integer is null or year >= $2)
) b using (symbol, year)
where $3 or a.digest is distinct from b.digest
order by symbol, year
