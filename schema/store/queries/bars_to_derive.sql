-- $1 symbols. Bars for the derivation of securities. $2 symbols, $3 years and $4 digests of the served prices. If a
-- year has the same digest, only its closes are read. As a join, Postgres would copy all columns into a hash table.
-- `offset 0` keeps the comparison at one per row.
select symbol, source, year, digest, days, close, versions,
       case when not is_served then range end as range,
       case when not is_served then volume end as volume,
       case when not is_served then extra end as extra
from (
  select *, (symbol, year, digest) in (select * from unnest($2::text[], $3::integer[], $4::bigint[])) as is_served
  from bars
  where symbol = any ($1)
  offset 0
) as b
