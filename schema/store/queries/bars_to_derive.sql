-- The years a generation is derived from. Of a year within the bounds that it serves just as it is here, only the
-- closes are read again.
select b.symbol, b.source, b.year, b.days, b.close, b.versions,
       case when p.year is null then b.range end as range,
       case when p.year is null then b.volume end as volume,
       case when p.year is null then b.extra end as extra
from unnest($1::text[], $2::integer[], $3::integer[]) as bounds (symbol, first, last)
join bars b on b.symbol = bounds.symbol
left join prices p
  on p.symbol = b.symbol and p.year = b.year and p.digest = b.digest and b.year between bounds.first and bounds.last
order by b.symbol, b.source, b.year
