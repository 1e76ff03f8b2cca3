insert into accounts.passwords (account_id, hash) values ($1, $2)
on conflict (account_id) do update set hash = excluded.hash, changed_at = now()
