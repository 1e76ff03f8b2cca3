-- Last four characters of the newest active key of account $1 that replaced key $3 with the name $2 and the kind $4.
-- No row without a replacement.
select k.last_four from accounts.api_keys k
where k.account_id = $1 and k.name = $2 and k.kind = $4 and k.id > $3
  and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
order by k.id desc limit 1
