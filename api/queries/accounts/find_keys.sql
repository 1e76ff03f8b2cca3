-- Active keys of account $1 that $2 names, or $3 in normal form, the one with that id first.
select k.id, k.name, k.last_four, k.expires_at, k.rate_per_minute
from accounts.api_keys k
where k.account_id = $1 and k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
  and (k.id::text = $2 or k.name in ($2, $3))
order by k.id::text = $2 desc, k.id
