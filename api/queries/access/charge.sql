-- Writes what is left of accounts whose row is still the one that was read, and of their keys with rates of their own.
-- $1 accounts in their order, so that instances cannot wait for each other in a circle; $2 tokens, $3 buckets' sizes,
-- $4 times, $5 months, $6 calls counted, $7 versions read; $8 keys, $9 tokens, $10 times.
with charged as (
  update accounts.limiter l
  set tokens = r.tokens, cap = r.cap, at = r.at, month = r.month, used = r.used
  from unnest($1::bigint[], $2::double precision[], $3::integer[], $4::timestamptz[], $5::date[], $6::bigint[], $7::xid[])
    as r (account_id, tokens, cap, at, month, used, version)
  where l.account_id = r.account_id and l.xmin = r.version
  returning l.account_id, l.xmin as version
), keys_charged as (
  update accounts.api_keys k set tokens = r.tokens, at = r.at
  from unnest($8::bigint[], $9::double precision[], $10::timestamptz[]) as r (id, tokens, at)
  where k.id = r.id and k.account_id = any(array(select account_id from charged))
)
select account_id, version, clock_timestamp() as now from charged
