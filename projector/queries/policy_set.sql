insert into source_policy (kind, source, valid_from, valid_to, rank) values ($1, $2, $3, $4, $5)
on conflict (kind, source, valid_from, valid_to) do update set rank = excluded.rank
