-- Functions that run as the owner look for tables where nobody else can put one: a session's temporary tables come first
-- unless the path names them last.
create or replace function accounts.remember_spent() returns trigger language plpgsql
security definer set search_path = pg_catalog, accounts, pg_temp as $$
begin
  delete from accounts.spent s where s.month < date_trunc('month', now() at time zone 'utc')::date;
  insert into accounts.spent as s (address, month, used)
  select sha256(convert_to(lower(old.email), 'utf8')), l.month, l.used
  from accounts.limiter l where l.account_id = old.id
  on conflict (address, month) do update set used = greatest(s.used, excluded.used);
  return null;
end $$;

create or replace function accounts.start_limiter() returns trigger language plpgsql
security definer set search_path = pg_catalog, accounts, pg_temp as $$
begin
  insert into accounts.limiter (account_id, tokens, cap, used)
  select new.id, t.burst, t.burst, coalesce((
    select s.used from accounts.spent s
    where s.address = sha256(convert_to(lower(new.email), 'utf8'))
      and s.month = date_trunc('month', now() at time zone 'utc')::date
  ), 0)
  from accounts.tiers t where t.tier = new.tier
  on conflict do nothing;
  return null;
end $$;

-- Whoever may run them could hang them on a table of their own.
revoke execute on function accounts.remember_spent(), accounts.start_limiter() from public;

-- And nobody but the projector has temporary tables at all (database_grants.sql, which follows every migration).
do $$
begin
  execute format('revoke temporary on database %I from public, dds_api, dds_dashboard', current_database());
end $$;

-- When a key was last used is asked for by key.
create index calls_by_key on accounts.calls (account_id, key_id, day);
