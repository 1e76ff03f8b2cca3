-- Admission in one function. Balances are integer micro-tokens, so no rounding error can add a call. A call takes 60 tokens.
-- A rate of one call a minute adds one token a second, which is one micro-token a microsecond.

drop trigger touch_limiter on accounts.accounts;
drop trigger touch_limiter on accounts.api_keys;
drop trigger touch_limiters on accounts.tiers;
drop function accounts.touch_limiter(), accounts.touch_limiters();

alter table accounts.limiter
  drop column plan_version,
  alter column tokens type bigint using floor(tokens * 6e7);
comment on column accounts.limiter.tokens is 'micro-tokens in the bucket at the time in at; a call takes 60 million';
comment on column accounts.limiter.cap is 'calls that the bucket held then: a change of tier keeps the used ones';

alter table accounts.api_keys alter column tokens type bigint using floor(tokens * 6e7);
comment on column accounts.api_keys.tokens is 'micro-tokens in the key''s own bucket at the time in at; null: it is full';

alter table accounts.spent alter column calls drop default;
alter table accounts.spent alter column calls type bigint using ceil(calls * 6e7);
alter table accounts.spent alter column calls set default 0;
alter table accounts.spent rename column calls to tokens;
comment on column accounts.spent.tokens is 'micro-tokens missing in the account''s bucket at the time in at: signing up again does not refill the minute';

create or replace function accounts.start_limiter() returns trigger language plpgsql
security definer set search_path = pg_catalog, accounts, pg_temp as $$
begin
  insert into accounts.limiter (account_id, tokens, cap, at, used)
  select new.id, greatest(0, t.burst * 60000000::bigint - coalesce(s.tokens, 0)), t.burst, coalesce(s.at, now()),
    case when s.month = date_trunc('month', now() at time zone 'utc')::date then s.used else 0 end
  from accounts.tiers t
  left join lateral (
    select * from accounts.spent o where o.address = sha256(convert_to(lower(new.email), 'utf8'))
    order by o.month desc limit 1
  ) s on true
  where t.tier = new.tier
  on conflict do nothing;
  return null;
end $$;

create or replace function accounts.remember_spent() returns trigger language plpgsql
security definer set search_path = pg_catalog, accounts, pg_temp as $$
begin
  -- The last month's rows stay for a day: a month that begins does not refill the minute.
  delete from accounts.spent s
  where s.month < date_trunc('month', (now() - interval '1 day') at time zone 'utc')::date;
  -- Calls that are being decided are counted first.
  perform from accounts.limiter l where l.account_id = old.id for update;
  insert into accounts.spent as s (address, month, used, tokens, at)
  select sha256(convert_to(lower(old.email), 'utf8')), l.month, l.used, l.cap * 60000000::bigint - l.tokens, l.at
  from accounts.limiter l where l.account_id = old.id
  on conflict (address, month) do update
  set used = greatest(s.used, excluded.used), tokens = excluded.tokens, at = excluded.at;
  return null;
end $$;

create function accounts.refill(tokens bigint, cap integer, burst integer, rate_per_minute integer, elapsed interval)
returns bigint language sql immutable as $$
  select least(
    burst * 60000000::bigint,
    greatest(0, tokens + (burst - cap) * 60000000::bigint)
      + least(greatest(0, date_part('epoch', elapsed)) * rate_per_minute * 1e6, burst * 6e7::double precision)::bigint
  )
$$;
comment on function accounts.refill is 'micro-tokens in a bucket after some time; a bucket for cap calls that now is for burst calls keeps the used ones';

create view accounts.valid_keys as
select k.id as key_id, k.hash, k.rate_per_minute as key_rate, k.account_id,
  t.tier, t.rank, t.rate_per_minute, t.burst, t.monthly_quota
from accounts.api_keys k
join accounts.accounts a on a.id = k.account_id
-- After the paid period, the next tier applies at once, without a job.
join accounts.tiers t
  on t.tier = case when a.paid_until is null or a.paid_until > now() then a.tier else a.next_tier end
where k.revoked_at is null and (k.expires_at is null or k.expires_at > now())
  and a.deleted_at is null and a.disabled_at is null;
comment on view accounts.valid_keys is 'keys that are accepted now, each with the plan of its account';
grant select on accounts.valid_keys to dds_api;

-- A position of the arrays has calls of one key: ranks is the least rank of a tier at which they count against the quota, or
-- null if they do not count. A key that is not valid has no row in the result.
create function accounts.admit(hashes bytea[], calls integer[], ranks smallint[])
returns table (
  ordinal bigint, account_id bigint, key_id bigint, tier text, rate_per_minute integer, burst integer, monthly_quota bigint,
  tokens bigint, key_rate integer, key_tokens bigint, month date, used bigint, granted bigint, counted bigint,
  decided_at timestamptz
) language plpgsql as $$
declare
  request record;
  account accounts.limiter;
  changed accounts.limiter[];
  number integer := 0;
begin
  -- All instances lock the accounts in the same order, so they cannot wait for each other in a circle.
  for request in
    select k.*, l as limiter
    from (
      select r.ordinal, r.calls, r.rank as counted_rank, v.*
      from unnest(hashes, calls, ranks) with ordinality as r (hash, calls, rank, ordinal)
      -- Keys are looked up one by one (offset 0), however few there were when the plan was made.
      cross join lateral (select * from accounts.valid_keys k where k.hash = r.hash offset 0) v
      order by v.account_id, r.ordinal
    ) k
    cross join lateral (select * from accounts.limiter l where l.account_id = k.account_id for no key update) l
  loop
    if account.account_id is distinct from request.account_id then
      number := number + 1;
      account := request.limiter;
      decided_at := clock_timestamp();
      account.tokens := accounts.refill(
        account.tokens, account.cap, request.burst, request.rate_per_minute, decided_at - account.at);
      account.cap := request.burst;
      account.at := decided_at;
      if account.month < date_trunc('month', decided_at at time zone 'utc')::date then
        account.month := date_trunc('month', decided_at at time zone 'utc')::date;
        account.used := 0;
      end if;
    end if;
    granted := least(request.calls, account.tokens / 60000000);
    key_tokens := null;
    if request.key_rate is not null then
      select accounts.refill(
        coalesce(k.tokens, request.key_rate * 60000000::bigint), request.key_rate, request.key_rate, request.key_rate,
        decided_at - k.at) into key_tokens
      from accounts.api_keys k where k.id = request.key_id;
      granted := least(granted, key_tokens / 60000000);
      key_tokens := key_tokens - granted * 60000000;
      update accounts.api_keys k set tokens = key_tokens, at = decided_at where k.id = request.key_id;
    end if;
    account.tokens := account.tokens - granted * 60000000;
    counted := case when request.rank >= request.counted_rank
      then least(granted, greatest(0, request.monthly_quota - account.used)) else 0 end;
    account.used := account.used + counted;
    changed[number] := account;
    ordinal := request.ordinal;
    account_id := request.account_id;
    key_id := request.key_id;
    tier := request.tier;
    rate_per_minute := request.rate_per_minute;
    burst := request.burst;
    monthly_quota := request.monthly_quota;
    tokens := account.tokens;
    key_rate := request.key_rate;
    month := account.month;
    used := account.used;
    return next;
  end loop;
  update accounts.limiter l set tokens = c.tokens, cap = c.cap, at = c.at, month = c.month, used = c.used
  from unnest(changed) c where l.account_id = c.account_id;
end $$;
comment on function accounts.admit is 'decides and charges calls; granted calls take tokens, counted ones also quota';
