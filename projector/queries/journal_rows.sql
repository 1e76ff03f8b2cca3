-- $1 symbols, without the new ones; $2 first ex-date of the replaced rows, null for all rows; $3 position.
-- Records added, removed and changed rows.
insert into changes (kind, symbol, id, date, position, at, gone)
select distinct on (symbol, id) '{table}', symbol, id, date, $3::bigint, clock_timestamp(), gone
from (
  select coalesce(d.symbol, b.symbol) as symbol, coalesce(d.id, b.id) as id, coalesce(d.ex_date, b.ex_date) as date,
    case when d.id is null then to_jsonb(b) || '{"status": "cancelled"}' end as gone
  from (
    select * from {table}
    where symbol = any ($1::text[]) and ($2::date is null or ex_date >= $2) and id is not null
  ) d
  full join (
    select * from {before}
    where symbol = any ($1::text[]) and ($2::date is null or ex_date >= $2) and id is not null
  ) b on b.symbol = d.symbol and b.id = d.id
  where ({d}) is distinct from ({b})
) changed
order by symbol, id, gone nulls first
on conflict (kind, symbol, id) do update
set date = excluded.date, position = excluded.position, at = excluded.at, gone = excluded.gone
