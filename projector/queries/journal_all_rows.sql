-- $1 kind, $2 symbols, $3 position. Records that all present rows of the symbols changed. One entry stands for all rows
-- without an entry of their own, so only removed rows keep theirs.
with present as (
  delete from changes where kind = $1::text and symbol = any ($2::text[]) and live and id <> ''
)
insert into changes (kind, symbol, id, position, at)
select $1::text, symbol, '', $3::bigint, clock_timestamp() from unnest($2::text[]) as symbol
on conflict (kind, symbol, id) do update set position = excluded.position, at = excluded.at
