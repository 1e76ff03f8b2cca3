insert into record_ids (digest, symbol)
select digest, symbol from unnest($1::bigint[], $2::text[]) as named (digest, symbol)
on conflict do nothing
