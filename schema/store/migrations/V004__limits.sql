-- What every account has used of its rate and its quota: one row per account, there from the account's first moment.
create table accounts.limiter (
  account_id bigint primary key references accounts.accounts on delete cascade,
  tokens double precision not null,
  cap integer not null,
  at timestamptz not null default now(),
  month date not null default date_trunc('month', now() at time zone 'utc')::date,
  used bigint not null default 0
) with (fillfactor = 50);
comment on column accounts.limiter.tokens is 'calls left in the bucket at the time in at';
comment on column accounts.limiter.cap is 'the bucket''s size then: a change of tier keeps what is used, cap - tokens';
comment on column accounts.limiter.used is 'calls counted in month (UTC)';

create function accounts.start_limiter() returns trigger language plpgsql as $$
begin
  insert into accounts.limiter (account_id, tokens, cap)
  select new.id, t.burst, t.burst from accounts.tiers t where t.tier = new.tier
  on conflict do nothing;
  return null;
end $$;
create trigger start_limiter after insert on accounts.accounts
  for each row execute function accounts.start_limiter();
insert into accounts.limiter (account_id, tokens, cap)
  select a.id, t.burst, t.burst from accounts.accounts a join accounts.tiers t using (tier)
  on conflict do nothing;

grant select, update on accounts.limiter to dds_api;
