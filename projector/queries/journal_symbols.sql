-- $1 kind, $2 symbols, $3 position. Records that all rows of the symbols changed, once per position. The times of changed
-- factors are kept, because answers of earlier versions show them.
with changed as (
  select n.symbol from unnest($2::text[]) as n (symbol)
  where not exists (
    select from changes c where c.kind = $1::text and c.symbol = n.symbol and c.id = '' and c.position = $3::bigint
  )
), factors as (
  insert into factor_changes (symbol, position, at)
  select symbol, $3::bigint, clock_timestamp() from changed where $1::text = 'factors'
  returning symbol, at
)
insert into changes (kind, symbol, id, position, at)
select $1::text, symbol, '', $3::bigint, coalesce(f.at, clock_timestamp())
from changed
left join factors f using (symbol)
on conflict (kind, symbol, id) do update set position = excluded.position, at = excluded.at
