-- What account holders do by themselves: sign in, keep keys, choose a plan. Their role sees nothing of the market.
do $$
begin
  create role dds_dashboard login;
exception when duplicate_object or unique_violation then null;
end $$;
grant usage on schema accounts to dds_dashboard;

alter table accounts.accounts
  add column disabled_at timestamptz,
  add column next_tier text not null default 'free' references accounts.tiers,
  add column period_start timestamptz,
  add column wanted_tier text references accounts.tiers,
  add column wanted_at timestamptz;
comment on column accounts.accounts.disabled_at is 'since then neither its keys nor its password open anything; null: never';
comment on column accounts.accounts.next_tier is 'what the account counts as after paid_until';
comment on column accounts.accounts.paid_until is 'after it the account counts as next_tier; null: until changed';
comment on column accounts.accounts.period_start is 'paid months roll from here; null: nobody pays by the month';
comment on column accounts.accounts.wanted_tier is 'asked for by the holder, for the operator to decide on';

-- Apart from accounts, which the API's role reads.
create table accounts.passwords (
  account_id bigint primary key references accounts.accounts on delete cascade,
  hash text not null,
  changed_at timestamptz not null default now()
);
comment on column accounts.passwords.hash is 'Argon2id, with salt and parameters, as a PHC string';

create table accounts.sessions (
  id bigint generated always as identity primary key,
  hash bytea not null unique,
  account_id bigint not null references accounts.accounts on delete cascade,
  address text not null,
  agent text not null,
  created_at timestamptz not null default now(),
  seen_at timestamptz not null default now()
);
create index sessions_by_account on accounts.sessions (account_id);
comment on column accounts.sessions.hash is 'SHA-256 of the cookie, which is stored nowhere';

create table accounts.links (
  hash bytea primary key,
  purpose text not null check (purpose in ('invitation', 'reset')),
  email text not null,
  account_id bigint references accounts.accounts on delete cascade,
  tier text not null default 'free' references accounts.tiers,
  expires_at timestamptz not null,
  used_at timestamptz
);
comment on column accounts.links.hash is 'SHA-256 of the secret in the link, which is stored nowhere';
comment on column accounts.links.account_id is 'whose password is reset; null for an invitation';

-- What a month had cost an address when its account was deleted or renamed: signing up again does not give it back.
create table accounts.spent (
  address bytea not null,
  month date not null,
  used bigint not null,
  primary key (address, month)
);
comment on column accounts.spent.address is 'SHA-256 of the address in lower case';

-- These run as the owner, so that no other role has to reach the tables they write.
create function accounts.remember_spent() returns trigger language plpgsql
security definer set search_path = pg_catalog, accounts as $$
begin
  delete from spent where month < date_trunc('month', now() at time zone 'utc')::date;
  insert into spent (address, month, used)
  select sha256(convert_to(lower(old.email), 'utf8')), l.month, l.used from limiter l where l.account_id = old.id
  on conflict (address, month) do update set used = greatest(spent.used, excluded.used);
  return null;
end $$;
create trigger remember_spent after update of email, deleted_at on accounts.accounts
  for each row execute function accounts.remember_spent();

create or replace function accounts.start_limiter() returns trigger language plpgsql
security definer set search_path = pg_catalog, accounts as $$
begin
  insert into limiter (account_id, tokens, cap, used)
  select new.id, t.burst, t.burst, coalesce((
    select s.used from spent s
    where s.address = sha256(convert_to(lower(new.email), 'utf8'))
      and s.month = date_trunc('month', now() at time zone 'utc')::date
  ), 0)
  from tiers t where t.tier = new.tier
  on conflict do nothing;
  return null;
end $$;

-- What a decision on a call depends on is more than before.
drop trigger touch_limiter on accounts.accounts;
create trigger touch_limiter after update of tier, paid_until, next_tier, disabled_at, deleted_at on accounts.accounts
  for each row execute function accounts.touch_limiter();

-- The end of the month that began at a start or so many months after it, UTC.
create function accounts.period_end(start timestamptz, at timestamptz) returns timestamptz language sql stable as $$
  select min(ends) from (
    select (start at time zone 'utc' + n * interval '1 month') at time zone 'utc' as ends
    from generate_series(
      greatest(0, (extract(year from age(at, start)) * 12 + extract(month from age(at, start)))::integer - 1),
      greatest(0, (extract(year from age(at, start)) * 12 + extract(month from age(at, start)))::integer) + 2
    ) n
  ) months where ends > at
$$;

grant select on accounts.tiers to dds_dashboard;
grant select, insert (email, tier, paid_until), update (email, tier, paid_until, next_tier, period_start, wanted_tier, wanted_at, deleted_at)
  on accounts.accounts to dds_dashboard;
grant select, insert (account_id, hash, name, last_four, expires_at, rate_per_minute), update (revoked_at, expires_at)
  on accounts.api_keys to dds_dashboard;
-- The row is locked while its account is changed, and touched so that the next call is decided on anew.
grant select, update (at) on accounts.limiter to dds_dashboard;
grant select, insert, update, delete on accounts.passwords to dds_dashboard;
grant select, insert, update (seen_at), delete on accounts.sessions to dds_dashboard;
grant select, update (used_at) on accounts.links to dds_dashboard;
grant select, insert on accounts.audit to dds_dashboard;
