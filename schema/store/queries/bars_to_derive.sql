-- $1 symbols. Bars for the derivation of securities. $2 symbols, $3 years and $4 digests of the served prices. If a
-- year has the same digest, only its closes are read.
select b.symbol, b.source, b.year, b.digest, b.days, b.close, b.versions,
       case when s.year is null then b.range end as range,
       case when s.year is null then b.volume end as volume,
       case when s.year is null then b.extra end as extra
from bars b
left join unnest($2::text[], $3::integer[], $4::bigint[]) as s (symbol, year, digest)
  on (s.symbol, s.year, s.digest) = (b.symbol, b.year, b.digest)
where b.symbol = any ($1)
