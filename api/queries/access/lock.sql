-- What the store holds of the accounts of some keys, locked until the transaction ends. $1 key hashes.
-- Unknown, expired and deleted keys, and keys of deleted accounts, give no row.
select r.place, k.id as key_id, k.rate_per_minute as key_rate, l.account_id, t.tier, t.rate_per_minute, t.burst,
  t.monthly_quota, l.tokens, l.cap, l.at, l.month, l.used, clock_timestamp() as now
from unnest($1::bytea[]) with ordinality as r (hash, place)
join accounts.api_keys k on k.hash = r.hash
join accounts.accounts a on a.id = k.account_id
-- After the paid period the account counts as free; no job has to run for that.
join accounts.tiers t
  on t.tier = case when a.paid_until is null or a.paid_until > clock_timestamp() then a.tier else 'free' end
join accounts.limiter l on l.account_id = a.id
where k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp()) and a.deleted_at is null
-- In account order, so that instances cannot wait for each other in a circle.
order by l.account_id
for update of l
