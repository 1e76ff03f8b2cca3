-- $1 symbols, without the new ones; $2 first ex-date of the replaced rows, null for all rows; $3 position.
-- Records added, removed and changed rows. Returns the changes of the last 90 days, with the row before the change; its
-- columns are null for an added row.
with compared as (
  select coalesce(d.symbol, b.symbol) as symbol, coalesce(d.id, b.id) as id, coalesce(d.ex_date, b.ex_date) as date,
    case when d.id is null then to_jsonb(b) || '{"status": "cancelled"}' end as gone,
    case when greatest(d.ex_date, b.ex_date) >= (select as_of from version) - 90 then to_jsonb(b) end as before,
    coalesce(greatest(d.ex_date, b.ex_date) >= (select as_of from version) - 90, false) as is_recent
  from (
    select * from {table}
    where symbol = any ($1::text[]) and ($2::date is null or ex_date >= $2) and id is not null
  ) d
  full join (
    select * from {before}
    where symbol = any ($1::text[]) and ($2::date is null or ex_date >= $2) and id is not null
  ) b on b.symbol = d.symbol and b.id = d.id
  where ({d}) is distinct from ({b})
), changed as (
  select distinct on (symbol, id) * from compared order by symbol, id, gone nulls first
), written as (
  insert into changes (kind, symbol, id, date, position, at, gone)
  select '{table}', symbol, id, date, $3::bigint, clock_timestamp(), gone from changed
  on conflict (kind, symbol, id) do update
  set date = excluded.date, position = excluded.position, at = excluded.at, gone = excluded.gone
)
select c.symbol as changed_symbol, c.id as changed_id, b.*
from changed c
left join lateral (
  select * from jsonb_populate_record(null::{table}, c.before) where c.before is not null
) b on true
where c.is_recent
