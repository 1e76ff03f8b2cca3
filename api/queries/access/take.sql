-- Takes calls that all pass from accounts whose plan version is known, whatever others took from them meanwhile. A row that holds
-- too little, or needs more than arithmetic (another month, size of bucket, or a clock that was set back), is left alone.
-- $1 accounts in their order, so that instances cannot wait for each other in a circle; $2 plan versions, $3 calls that flow in a
-- second, $4 buckets' sizes, $5 times, $6 months, $7 quotas, $8 calls, $9 how many of them count.
-- Gives what the rows that were written hold now, as one row of lists: a row for each would cost more than what is in it.
with taken as (
  update accounts.limiter l
  set tokens = least(l.cap, l.tokens + r.rate * greatest(0, date_part('epoch', r.at - l.at))) - r.calls,
    at = greatest(l.at, r.at), used = l.used + r.counted
  from unnest($1::bigint[], $2::bigint[], $3::double precision[], $4::integer[], $5::timestamptz[], $6::date[], $7::bigint[],
      $8::integer[], $9::integer[])
    as r (account_id, plan_version, rate, cap, at, month, quota, calls, counted)
  where l.account_id = r.account_id and l.plan_version = r.plan_version and l.cap = r.cap and l.month = r.month
    and l.at < r.at + interval '1 second' and l.used + r.counted <= r.quota
    and least(l.cap, l.tokens + r.rate * greatest(0, date_part('epoch', r.at - l.at))) + 5e-7 >= r.calls
  returning l.account_id, l.xmin as version, l.tokens, l.at, l.used
)
select array_agg(account_id) as accounts, array_agg(version) as versions, array_agg(tokens) as tokens, array_agg(at) as times,
  array_agg(used) as used, clock_timestamp() as now
from taken having count(*) > 0
