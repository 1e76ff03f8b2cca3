-- Accounts, keys and what they may do. The projector has no access to this schema.
create schema accounts;
grant usage on schema accounts to dds_api;

create table accounts.tiers (
  tier text primary key,
  rank smallint not null unique,
  rate_per_minute integer not null,
  burst integer not null,
  monthly_quota bigint not null,
  depth_years integer not null
);
insert into accounts.tiers values
  ('free', 0, 10, 20, 5000, 1),
  ('starter', 1, 30, 60, 50000, 5),
  ('premium', 2, 100, 200, 250000, 30),
  ('professional', 3, 300, 600, 1000000, 100);

create table accounts.accounts (
  id bigint generated always as identity primary key,
  email text not null,
  tier text not null default 'free' references accounts.tiers,
  paid_until timestamptz,
  created_at timestamptz not null default now(),
  deleted_at timestamptz
);
create unique index accounts_by_email on accounts.accounts (lower(email)) where deleted_at is null;
comment on column accounts.accounts.paid_until is 'after it the account counts as free; null: until changed';

create table accounts.api_keys (
  id bigint generated always as identity primary key,
  account_id bigint not null references accounts.accounts,
  hash bytea not null unique,
  name text not null check (char_length(name) between 1 and 64),
  last_four text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz
);
create index api_keys_by_account on accounts.api_keys (account_id);
comment on column accounts.api_keys.hash is 'SHA-256 of the secret, which is stored nowhere';

grant select on accounts.tiers, accounts.accounts to dds_api;
grant select on accounts.api_keys to dds_api;
