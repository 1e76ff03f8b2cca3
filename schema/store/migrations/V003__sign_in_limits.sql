-- Sign-in limits that all instances share, devices known by a sign-in, and the calls of the present minute of an address
-- whose account was deleted.

-- A crash empties it, which costs an attacker's account of a minute and no holder anything.
create unlogged table accounts.sign_in_limits (
  subject bytea primary key,
  full_at timestamptz not null
);
comment on table accounts.sign_in_limits is 'attempts with a password, by subject: address, account, or both';
comment on column accounts.sign_in_limits.subject is 'SHA-256 of the subject';
comment on column accounts.sign_in_limits.full_at is 'time at which every attempt so far is allowed again';
create index sign_in_limits_by_time on accounts.sign_in_limits (full_at);

create table accounts.known_devices (
  account_id bigint not null references accounts.accounts on delete cascade,
  device bytea not null,
  seen_at timestamptz not null default now(),
  primary key (account_id, device)
);
comment on table accounts.known_devices is 'browsers and networks of successful sign-ins: floods from others do not delay them';
comment on column accounts.known_devices.device is 'SHA-256 of a cookie or of a network';

create function accounts.charge_attempt(
  subjects bytea[], intervals double precision[], bursts integer[], delays double precision[]
) returns table (refused_by integer, seconds double precision) language plpgsql as $$
declare
  at timestamptz;
  delay double precision;
  longest double precision := 0;
begin
  delete from accounts.sign_in_limits l where l.subject in (
    select o.subject from accounts.sign_in_limits o where o.full_at < now() - interval '1 minute'
    order by o.full_at limit 20 for update skip locked
  );
  -- Locks are taken in the order of the subjects, so that two attempts cannot wait for each other in a circle.
  insert into accounts.sign_in_limits (subject, full_at)
  select s, now() from unnest(subjects) s order by s on conflict do nothing;
  perform from accounts.sign_in_limits l where l.subject = any (subjects) order by l.subject for update;
  at := clock_timestamp();
  for number in 1..cardinality(subjects) loop
    select extract(epoch from greatest(l.full_at, at) - at)::double precision - (bursts[number] - 1) * intervals[number]
    into delay from accounts.sign_in_limits l where l.subject = subjects[number];
    if delay > delays[number] then
      return query select number, delay - delays[number];
      return;
    end if;
    longest := greatest(longest, delay);
  end loop;
  update accounts.sign_in_limits l set full_at = greatest(l.full_at, at) + r.pause * interval '1 second'
  from unnest(subjects, intervals) as r (subject, pause) where l.subject = r.subject;
  return query select 0, longest;
end $$;
comment on function accounts.charge_attempt is 'charges an attempt to all its subjects, or to none: refused_by is the first that refuses, or 0; seconds are the delay, or the time until it is accepted';

-- The bound of equal changes a day counts by these columns.
create index audit_by_action on accounts.audit (account_id, action, at);

alter table accounts.spent
  add column calls double precision not null default 0,
  add column at timestamptz;
comment on column accounts.spent.calls is 'calls missing in the account''s bucket at the time in at: signing up again does not refill the minute';

create or replace function accounts.start_limiter() returns trigger language plpgsql
security definer set search_path = pg_catalog, accounts, pg_temp as $$
begin
  insert into accounts.limiter (account_id, tokens, cap, at, used)
  select new.id, greatest(0, t.burst - coalesce(s.calls, 0)), t.burst, coalesce(s.at, now()),
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
  insert into accounts.spent as s (address, month, used, calls, at)
  select sha256(convert_to(lower(old.email), 'utf8')), l.month, l.used, l.cap - l.tokens, l.at
  from accounts.limiter l where l.account_id = old.id
  on conflict (address, month) do update
  set used = greatest(s.used, excluded.used), calls = excluded.calls, at = excluded.at;
  return null;
end $$;

grant select, insert, update, delete on accounts.sign_in_limits, accounts.known_devices to dds_dashboard;
