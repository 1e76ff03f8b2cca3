-- What decides on an account's calls beside the numbers in its row (tier, paid period, keys) are its terms. Every change of
-- them raises their number, and no call does. So whoever knows the terms takes calls from the row as it is, although other
-- instances took some meanwhile.
alter table accounts.limiter add column terms bigint not null default 0;
comment on column accounts.limiter.terms is 'raised by every change of what decides on calls beside this row''s numbers';

create or replace function accounts.touch_limiter() returns trigger language plpgsql as $$
begin
  update accounts.limiter set terms = terms + 1
  where account_id = (to_jsonb(old) ->> case tg_table_name when 'accounts' then 'id' else 'account_id' end)::bigint;
  return null;
end $$;

create or replace function accounts.touch_limiters() returns trigger language plpgsql as $$
begin
  -- In account order, as admission locks them.
  perform from accounts.limiter order by account_id for update;
  update accounts.limiter set terms = terms + 1;
  return null;
end $$;

-- The dashboard changed the time only to change the row.
revoke update (at) on accounts.limiter from dds_dashboard;
grant update (terms) on accounts.limiter to dds_dashboard;
