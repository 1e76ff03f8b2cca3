insert into symbol_links (link, symbol)
select link, symbol from unnest($1::bigint[], $2::text[]) as named (link, symbol)
on conflict do nothing
