-- $1 kind, $2 symbols, $3 position. Records that all rows of the symbols changed. The times of changed factors are
-- kept, because responses of earlier versions contain them.
with factors as (
  insert into factor_changes (symbol, position, at)
  select symbol, $3::bigint, clock_timestamp() from unnest($2::text[]) as symbol where $1::text = 'factors'
  returning symbol, at
)
insert into changes (kind, symbol, id, position, at)
select $1::text, symbol, '', $3::bigint, coalesce(f.at, clock_timestamp())
from unnest($2::text[]) as symbol
left join factors f using (symbol)
on conflict (kind, symbol, id) do update set position = excluded.position, at = excluded.at
