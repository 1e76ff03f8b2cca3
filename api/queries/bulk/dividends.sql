-- $1 canonical symbols; $2 first and $3 last ex-date or null; $4 rows of a symbol at most, newest first; $5 statuses.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of, t.*
from version v
left join unnest($1::text[]) as wanted (canonical) on true
left join lateral (
  select * from dividends d
  where d.symbol = wanted.canonical and d.ex_date >= $2 and ($3::date is null or d.ex_date <= $3)
    and d.status = any ($5::text[])
  order by d.ex_date desc, d.type, d.id
  limit $4
) t on true
