-- Authenticates, authorises and charges a whole queue of calls in one statement.
-- $1 key hashes, $2 least tier ranks, $3 whether the call counts against the quota, $4 number of equal calls.
-- Unknown, expired and deleted keys, and keys of deleted accounts, give no row.
with keyed as materialized (
  select r.place, r.need, r.counted, r.calls, k.id as key_id, k.rate_per_minute as key_rate, k.account_id, t.tier, t.rank,
    t.rate_per_minute, t.burst, t.monthly_quota
  from unnest($1::bytea[], $2::smallint[], $3::boolean[], $4::integer[])
    with ordinality as r (hash, need, counted, calls, place)
  join accounts.api_keys k on k.hash = r.hash
  join accounts.accounts a on a.id = k.account_id
  -- After the paid period the account counts as free; no job has to run for that.
  join accounts.tiers t
    on t.tier = case when a.paid_until is null or a.paid_until > clock_timestamp() then a.tier else 'free' end
  where k.revoked_at is null and (k.expires_at is null or k.expires_at > clock_timestamp()) and a.deleted_at is null
),
locked as materialized (
  -- In account order, so that instances cannot wait for each other in a circle.
  select k.*, l.tokens, l.cap, l.at, l.month, l.used
  from keyed k join accounts.limiter l using (account_id)
  order by k.account_id, k.key_id, k.place
  for update of l
),
capped as materialized (
  -- Keys with a rate of their own, which whoever holds the account's lock may take.
  select k.id as key_id, k.tokens, k.at from accounts.api_keys k
  where k.id in (select l.key_id from locked l where l.key_rate is not null)
  order by k.id
  for update
),
clock as materialized (
  -- Read after the locks are held.
  select clock_timestamp() as now, date_trunc('month', clock_timestamp() at time zone 'utc')::date as month,
    (select count(*) from locked), (select count(*) from capped)
),
state as (
  select l.place, l.calls, l.counted and l.rank >= l.need as counts, l.rank >= l.need as included, l.key_id, l.key_rate,
    l.account_id, l.tier, l.rate_per_minute, l.burst, l.monthly_quota, c.now,
    -- A month never goes back.
    greatest(c.month, l.month) as month, case when c.month > l.month then 0 else l.used end as used,
    -- A change of tier keeps what is used; time going backwards refills nothing.
    least(
      l.burst,
      greatest(0, l.burst - (l.cap - l.tokens))
        + l.rate_per_minute / 60.0::double precision * greatest(0, extract(epoch from c.now - l.at)::double precision)
    ) as available,
    least(
      l.key_rate,
      coalesce(o.tokens, l.key_rate)
        + l.key_rate / 60.0::double precision * greatest(0, extract(epoch from c.now - o.at)::double precision)
    ) as key_available,
    sum(l.calls) over key_order - l.calls as key_calls_ahead
  from locked l cross join clock c left join capped o using (key_id)
  window key_order as (partition by l.account_id, l.key_id order by l.place)
),
allowed as (
  -- A millionth of a call absorbs binary rounding at the very moment a token is full.
  select s.*,
    case when s.key_rate is null then s.calls
      else greatest(0, least(s.calls, floor(s.key_available + 1e-6) - s.key_calls_ahead))::integer end as allowed
  from state s
),
rated as (
  select a.*,
    greatest(0, least(a.allowed, floor(a.available + 1e-6) - (sum(a.allowed) over account_order - a.allowed)))::integer
      as granted
  from allowed a window account_order as (partition by a.account_id order by a.key_id, a.place)
),
counted as (
  select r.*,
    (sum(r.granted) over account_order - r.granted)::integer as ahead,
    (sum(r.granted) over (partition by r.account_id, r.key_id order by r.place) - r.granted)::integer as key_ahead,
    case when r.counts then r.granted else 0 end as counting,
    sum(case when r.counts then r.granted else 0 end) over account_order as counting_to_here
  from rated r window account_order as (partition by r.account_id order by r.key_id, r.place)
),
decided as materialized (
  select c.*, greatest(0, least(c.counting, c.monthly_quota - c.used - (c.counting_to_here - c.counting)))::integer as passed
  from counted c
),
charged as (
  update accounts.limiter l
  set tokens = z.available - z.granted, cap = z.burst, at = z.now, month = z.month, used = z.used + z.passed
  from (
    select d.account_id, min(d.available) as available, min(d.burst) as burst, sum(d.granted) as granted,
      min(d.now) as now, min(d.month) as month, min(d.used) as used, sum(d.passed) as passed
    from decided d group by d.account_id
  ) z
  where l.account_id = z.account_id
),
charged_keys as (
  update accounts.api_keys k
  set tokens = z.tokens, at = z.now
  from (
    select d.key_id, min(d.key_available) - sum(d.granted) as tokens, min(d.now) as now
    from decided d where d.key_rate is not null group by d.key_id
  ) z
  where k.id = z.key_id
)
select d.place, d.account_id, d.tier, d.included, d.granted, d.passed,
  d.rate_per_minute, d.burst, d.available - d.ahead as tokens,
  d.key_rate, d.key_available - d.key_ahead as key_tokens, d.monthly_quota,
  least(d.used + d.counting_to_here - d.counting, greatest(d.used, d.monthly_quota)) as used,
  extract(epoch from d.now)::double precision as now,
  extract(epoch from d.month at time zone 'utc')::double precision as month_start,
  extract(epoch from (d.month + interval '1 month') at time zone 'utc')::double precision as month_end
from decided d
