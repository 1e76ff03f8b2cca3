-- Active keys of account $1 with id $2, name $2 or name $3, which is $2 in normal form. The key with id $2 comes first.
select k.id, k.name, k.kind, k.last_four, k.expires_at, k.rate_per_minute
from accounts.api_keys k
where k.account_id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
  and (k.id::text = $2 or k.name in ($2, $3))
order by k.id::text = $2 desc, k.id
