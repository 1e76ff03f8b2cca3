-- Ends the unused one-time links of account $1.
update accounts.links set used_at = now() where account_id = $1 and used_at is null
