-- A key may have a rate of its own below its account's; its bucket stands in its row.
alter table accounts.api_keys
  add column rate_per_minute integer check (rate_per_minute > 0),
  add column tokens double precision,
  add column at timestamptz;
comment on column accounts.api_keys.rate_per_minute is 'calls a minute, and at once, of this key alone; null: the account''s';
comment on column accounts.api_keys.tokens is 'calls left in the key''s own bucket at the time in at; null: all';
grant update (tokens, at) on accounts.api_keys to dds_api;

-- What was done to accounts and keys, by whom. Nothing in it is ever changed, by its owner neither.
create table accounts.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  actor text not null default session_user,
  account_id bigint not null references accounts.accounts,
  action text not null,
  details jsonb not null default '{}'
);
create index audit_by_account on accounts.audit (account_id, id);
comment on column accounts.audit.actor is 'role of the database, or the account itself';
comment on column accounts.audit.details is 'what changed; never a secret';

create function accounts.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the audit log is append-only' using errcode = 'insufficient_privilege';
end $$;
create trigger append_only before update or delete or truncate on accounts.audit
  for each statement execute function accounts.refuse_change();

grant select, insert on accounts.audit to dds_api;
