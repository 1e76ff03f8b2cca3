-- $1 canonical symbols; $2 first and $3 last ex-date, or null; $4 maximum rows per symbol, newest first; $5 statuses.
-- All rows with the ex-date of the last row are included, so that the next request can continue with the preceding day.
with kept as materialized (
  select t.*
  from unnest($1::text[]) as wanted (canonical)
  cross join lateral (
    select * from dividends d
    where d.symbol = wanted.canonical and d.ex_date >= $2 and ($3::date is null or d.ex_date <= $3)
      and d.status = any ($5::text[])
    order by d.ex_date desc
    fetch first ($4) rows with ties
  ) t
)
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, t.*, o.has_more
from version v
left join kept t on true
left join (
  select k.symbol, exists (
    select from dividends d
    where d.symbol = k.symbol and d.ex_date >= $2 and d.ex_date < k.oldest and d.status = any ($5::text[])
  ) as has_more
  from (select symbol, min(ex_date) as oldest from kept group by symbol) k
) o on o.symbol = t.symbol
order by t.symbol, t.ex_date desc, t.type collate "C", t.id collate "C"
