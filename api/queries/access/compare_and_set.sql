-- Writes the balances of accounts whose rows are unchanged since they were read, and of their keys with separate
-- buckets.
-- $1 accounts, sorted, so that instances cannot deadlock; $2 tokens, $3 capacities of the buckets, $4 times, $5 months,
-- $6 calls counted against the quota, $7 row versions that were read; $8 keys, $9 tokens, $10 times.
with written as (
  update accounts.limiter l
  set tokens = r.tokens, cap = r.capacity, at = r.at, month = r.month, used = r.used
  from unnest($1::bigint[], $2::double precision[], $3::integer[], $4::timestamptz[], $5::date[], $6::bigint[], $7::xid[])
    as r (account_id, tokens, capacity, at, month, used, version)
  where l.account_id = r.account_id and l.xmin = r.version
  returning l.account_id, l.xmin as version
), keys_written as (
  update accounts.api_keys k set tokens = r.tokens, at = r.at
  from unnest($8::bigint[], $9::double precision[], $10::timestamptz[]) as r (id, tokens, at)
  where k.id = r.id and k.account_id = any(array(select account_id from written))
)
select account_id, version, clock_timestamp() as now from written
