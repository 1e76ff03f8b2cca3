-- $1 symbols and $2 securities side by side: each symbol no longer names the security; $3 position.
insert into changes (kind, symbol, id, position, at)
select 'symbols', symbol, security, $3::bigint, clock_timestamp()
from unnest($1::text[], $2::text[]) as former (symbol, security)
on conflict (kind, symbol, id) do update set position = excluded.position, at = excluded.at
