-- $1 key hashes. Keys with their accounts, plans and balances, from one snapshot.
-- Unknown, expired and deleted keys, and keys of deleted or disabled accounts, give no row.
select r.ordinal, k.id as key_id, k.expires_at, k.rate_per_minute as key_rate, k.tokens as key_tokens, k.at as key_at,
  l.account_id, a.paid_until, t.tier, t.rate_per_minute, t.burst, t.monthly_quota,
  l.tokens, l.cap, l.at, l.month, l.used, l.plan_version, l.xmin as version, clock_timestamp() as now
from unnest($1::bytea[]) with ordinality as r (hash, ordinal)
join accounts.api_keys k on k.hash = r.hash
join accounts.accounts a on a.id = k.account_id
-- After the paid period, the next tier applies at once, without a job.
join accounts.tiers t
  on t.tier = case when a.paid_until is null or a.paid_until > clock_timestamp() then a.tier else a.next_tier end
join accounts.limiter l on l.account_id = a.id
where k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp())
  and a.deleted_at is null and a.disabled_at is null
