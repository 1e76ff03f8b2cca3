-- $1 symbols, without the new ones; $2 first ex-date of the replaced rows, null for all rows; $3 position.
-- Records added, removed and changed rows. If all present rows of a symbol changed, one entry stands for all rows that have
-- no entry of their own.
with compared as materialized (
  select coalesce(d.symbol, b.symbol) as symbol, coalesce(d.id, b.id) as id, coalesce(d.ex_date, b.ex_date) as date,
    d.id is not null as is_present, ({d}) is distinct from ({b}) as is_changed,
    case when d.id is null then to_jsonb(b) end as gone
  from (
    select * from {table}
    where symbol = any ($1::text[]) and ($2::date is null or ex_date >= $2) and id is not null
  ) d
  full join (
    select * from {before}
    where symbol = any ($1::text[]) and ($2::date is null or ex_date >= $2) and id is not null
  ) b on b.symbol = d.symbol and b.id = d.id
), whole as materialized (
  select c.symbol from compared c
  where c.is_present
  group by c.symbol
  having bool_and(c.is_changed) and not exists (
    select from {table} e where e.symbol = c.symbol and e.ex_date < $2::date and e.id is not null
  )
)
insert into changes (kind, symbol, id, date, position, at, gone)
select distinct on (symbol, id) '{table}', symbol, id, date, $3::bigint, clock_timestamp(), gone
from (
  select symbol, id, date, gone from compared c
  where is_changed and not (
    is_present and symbol in (select symbol from whole)
    and not exists (select from changes o where o.kind = '{table}' and o.symbol = c.symbol and o.id = c.id)
  )
  union all
  select symbol, '', null, null from whole
) changed
order by symbol, id, gone nulls first
on conflict (kind, symbol, id) do update
set date = excluded.date, position = excluded.position, at = excluded.at, gone = excluded.gone
