-- Whoever remembers an account's limits may charge it as long as its row is the one that was read (its xmin). So every
-- change that a decision depends on gives the account's row a new version.
create function accounts.touch_limiter() returns trigger language plpgsql as $$
begin
  update accounts.limiter set at = at
  where account_id = (to_jsonb(old) ->> case tg_table_name when 'accounts' then 'id' else 'account_id' end)::bigint;
  return null;
end $$;
create trigger touch_limiter after update of tier, paid_until, deleted_at on accounts.accounts
  for each row execute function accounts.touch_limiter();
create trigger touch_limiter
  after delete or update of account_id, hash, expires_at, revoked_at, rate_per_minute on accounts.api_keys
  for each row execute function accounts.touch_limiter();

create function accounts.touch_limiters() returns trigger language plpgsql as $$
begin
  -- In account order, as admission locks them.
  perform from accounts.limiter order by account_id for update;
  update accounts.limiter set at = at;
  return null;
end $$;
create trigger touch_limiters after update on accounts.tiers
  for each statement execute function accounts.touch_limiters();
