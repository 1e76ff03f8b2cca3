-- $1 kind, $2 symbols, $3 position. Records that all rows of the symbols changed.
insert into changes (kind, symbol, id, position, at)
select $1::text, symbol, '', $3::bigint, clock_timestamp() from unnest($2::text[]) as symbol
on conflict (kind, symbol, id) do update set position = excluded.position, at = excluded.at
