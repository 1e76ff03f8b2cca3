-- Subtracts the calls of an account if all of them are admitted and its plan version is the cached one. Concurrent
-- decrements by other instances are allowed. A row is not changed if it has too few calls left, or another month or
-- capacity, or if the clock was set back.
-- $1 accounts, sorted, so that instances cannot deadlock; $2 plan versions, $3 refill rates in calls per second, $4
-- capacities of the buckets, $5 times, $6 months, $7 quotas, $8 calls, $9 calls that reduce the quota.
-- Returns the new balances as one row of arrays, because one row per account would cost more than its values.
with decremented as (
  update accounts.limiter l
  set tokens = least(l.cap, l.tokens + r.rate * greatest(0, date_part('epoch', r.at - l.at))) - r.calls,
    at = greatest(l.at, r.at), used = l.used + r.counted
  from unnest($1::bigint[], $2::bigint[], $3::double precision[], $4::integer[], $5::timestamptz[], $6::date[], $7::bigint[],
      $8::integer[], $9::integer[])
    as r (account_id, plan_version, rate, capacity, at, month, quota, calls, counted)
  where l.account_id = r.account_id and l.plan_version = r.plan_version and l.cap = r.capacity and l.month = r.month
    and l.at < r.at + interval '1 second' and l.used + r.counted <= r.quota
    and least(l.cap, l.tokens + r.rate * greatest(0, date_part('epoch', r.at - l.at))) + 5e-7 >= r.calls
  returning l.account_id, l.xmin as version, l.tokens, l.at, l.used
)
select array_agg(account_id) as accounts, array_agg(version) as versions, array_agg(tokens) as tokens, array_agg(at) as times,
  array_agg(used) as used, clock_timestamp() as now
from decremented having count(*) > 0
