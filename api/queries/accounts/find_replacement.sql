-- The end of the active key of account $1 that replaced its key $3 of name $2; no row where none did.
select k.last_four from accounts.api_keys k
where k.account_id = $1 and k.name = $2 and k.id > $3
  and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
order by k.id desc limit 1
