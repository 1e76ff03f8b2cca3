-- The years a generation is derived from. Of a year that it serves just as it is here, only the closes are read again:
-- within the years that are wholly the security's own, from its only source, before the newest two.
with years as (
  select b.symbol, b.source, b.year,
         coalesce(b.year between own.first and own.last and p.digest = b.digest
           and b.year < max(b.year) over of_symbol - 1
           and min(b.source) over of_symbol = max(b.source) over of_symbol, false) as closes_only
  from unnest($1::text[], $2::integer[], $3::integer[]) as own (symbol, first, last)
  join bars b using (symbol)
  left join prices p on (p.symbol, p.year) = (b.symbol, b.year)
  window of_symbol as (partition by b.symbol)
)
select symbol, source, year, b.days, b.close, b.versions,
       case when not closes_only then b.range end as range,
       case when not closes_only then b.volume end as volume,
       case when not closes_only then b.extra end as extra
from years
join bars b using (symbol, source, year)
order by symbol, source, year
