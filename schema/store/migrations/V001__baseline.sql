-- Baseline schema: roles, bookkeeping of the projector (control), accounts, and the analysts' entry point.
-- Facts and read tables belong to fact sets and generations; their tables are in schema/store/generation/.
--
-- 1. Roles
-- 2. control: fact sets, generations, source policy, dead letters, dirty symbols
-- 3. control: change journal of the served rows
-- 4. accounts: plans, accounts, keys, credentials
-- 5. accounts: rate limits and quotas
-- 6. accounts: audit log and usage statistics
-- 7. analyst: generations for SQL users
-- 8. Functions that need the owner's rights
-- 9. Privileges

-- 1. Roles ------------------------------------------------------------------------------------------------------------
-- Roles belong to the whole server, so a second database finds them there already. Rights on the database itself are in
-- queries/database_grants.sql, which runs after every migration.
do $$
declare name text;
begin
  foreach name in array array['dds_projector', 'dds_api', 'dds_dashboard', 'dds_analyst'] loop
    begin
      execute format('create role %I login', name);
    exception when duplicate_object or unique_violation then null;
    end;
  end loop;
end $$;
revoke create on schema public from public;

create schema control;
comment on schema control is 'bookkeeping of the projector';
create schema accounts;
comment on schema accounts is 'accounts, keys, limits and usage; the projector has no access';
create schema analyst;
comment on schema analyst is 'entry point of SQL users';

-- 2. Fact sets, generations, source policy, dead letters, dirty symbols -----------------------------------------------

create table control.fact_sets (
  name text primary key,
  genesis_id text,
  checkpoint bigint not null default 0,
  checkpoint_message text,
  epoch bigint not null default 0,
  holder text,
  lease_until timestamptz,
  paused boolean not null default false,
  until_sequence bigint,
  halted text
);
comment on table control.fact_sets is 'one folding of the log, in a schema of its own, with its checkpoint and its writer''s lease';
comment on column control.fact_sets.name is 'name of the schema that holds the facts';
comment on column control.fact_sets.genesis_id is 'identity of the stream; null: nothing was applied yet';
comment on column control.fact_sets.checkpoint is 'last log sequence whose effects are committed';
comment on column control.fact_sets.checkpoint_message is 'Nats-Msg-Id of the message at checkpoint, because a log that lost its end numbers new messages the same; empty: it had none';
comment on column control.fact_sets.epoch is 'raised by every take-over; a writer with an older epoch is refused';
comment on column control.fact_sets.holder is 'process that holds the lease';
comment on column control.fact_sets.lease_until is 'end of the lease';
comment on column control.fact_sets.paused is 'true: nothing is applied until the operator resumes';
comment on column control.fact_sets.until_sequence is 'frozen for study: nothing later is applied';
comment on column control.fact_sets.halted is 'reason why the projector stopped; null: it did not';

create table control.generations (
  id integer primary key,
  fact_set text not null references control.fact_sets,
  method_version text not null,
  state text not null check (state in ('building', 'tailing', 'frozen')),
  benchmark text not null,
  as_of date,
  policy json,
  held_policy json,
  rules json not null default '{}',
  projections text[],
  rebuilt_to text,
  note text,
  created_at timestamptz not null default now()
);
comment on table control.generations is 'one set of read tables, in schema read_g<id>, derived from a fact set by one version of the rules';
comment on column control.generations.method_version is 'version of the rules';
comment on column control.generations.benchmark is 'symbol that betas are measured against';
comment on column control.generations.as_of is 'market date the generation is frozen at; null: the newest session';
comment on column control.generations.policy is 'source policy of its own; null: the live one';
comment on column control.generations.held_policy is 'the live policy as it was before a pending change, which the next generation takes; null: no change is pending';
comment on column control.generations.rules is 'rule parameters that are not their defaults, by name; their values as text';
comment on column control.generations.projections is 'read tables that were rebuilt; null: all';
comment on column control.generations.rebuilt_to is 'last symbol a rebuild has committed, so that it resumes there';
comment on column control.generations.note is 'operator''s note of the last promotion';

-- A number is given once: caches and clients name a generation by it, so a dropped one's must fit no other.
create sequence control.generation_numbers as integer;
select setval('control.generation_numbers', 1);

create table control.active (
  one boolean primary key default true check (one),
  generation integer not null references control.generations,
  previous integer references control.generations on delete set null
);
comment on table control.active is 'the served generation, in one row';
comment on column control.active.previous is 'generation served before, for a rollback';

create table control.reviews (
  generation integer not null references control.generations on delete cascade,
  against integer not null references control.generations on delete cascade,
  sequence bigint not null,
  against_sequence bigint not null,
  reviewed_at timestamptz not null default now(),
  primary key (generation, against)
);
comment on table control.reviews is 'reviewed differences between two generations; a promotion requires one';
comment on column control.reviews.sequence is 'log sequence of the generation when it was compared';
comment on column control.reviews.against_sequence is 'log sequence of the other one then';

create table control.source_policy (
  kind text not null,
  source text not null,
  valid_from date,
  valid_to date,
  rank integer not null,
  unique nulls not distinct (kind, source, valid_from, valid_to)
);
comment on table control.source_policy is 'precedence of the sources, by kind and date range; sources without a rule come last';
comment on column control.source_policy.rank is 'the lower one wins';

create table control.dead_letters (
  fact_set text not null references control.fact_sets,
  sequence bigint not null,
  item integer not null,
  code text not null,
  reason text not null,
  subject text not null,
  frame text,
  source text,
  file text,
  line bigint,
  payload text not null,
  status text not null default 'held' check (status in ('held', 'discarded', 'applied')),
  primary key (fact_set, sequence, item)
);
comment on table control.dead_letters is 'messages and rows that could not be applied, each exactly once';
comment on column control.dead_letters.item is 'row within the message; of prices, the series of a symbol';
comment on column control.dead_letters.code is 'class of the error, for alerts';

create table control.dirty (
  generation integer not null references control.generations on delete cascade,
  symbols text[] not null,
  reference boolean not null
);
comment on table control.dirty is 'symbols whose facts changed since a generation was last derived; committed with the facts, in one row a batch';
comment on column control.dirty.symbols is 'the empty symbol, with reference, asks to look again although the log is quiet';
comment on column control.dirty.reference is 'true: security records changed, so identities are resolved again';

-- 3. Change journal ---------------------------------------------------------------------------------------------------
-- For clients that keep a copy. Which rows were served when is no function of the log, so none of it belongs to a generation.

create sequence control.positions;
comment on sequence control.positions is 'positions of the journal, in the order of commits';

create table control.journal (
  one boolean primary key default true check (one),
  id text not null,
  begins bigint not null,
  begun_at timestamptz not null
);
comment on table control.journal is 'identity and beginning of the journal, in one row';
comment on column control.journal.id is 'names this journal: a position of another database means nothing here';
comment on column control.journal.begins is 'changes up to this position are no longer in the journal';
insert into control.journal (id, begins, begun_at)
values (substr(replace(gen_random_uuid()::text, '-', ''), 1, 8), 0, now());

create table control.changes (
  kind text collate "C" not null,
  symbol text collate "C" not null,
  id text collate "C" not null,
  date date,
  position bigint not null,
  at timestamptz not null,
  gone jsonb,
  live boolean not null generated always as (gone is null) stored,
  primary key (kind, symbol, id)
);
comment on table control.changes is 'newest change of every served row, by position';
comment on column control.changes.id is 'id of the row; empty: every row of the symbol that has no change of its own';
comment on column control.changes.date is 'ex-date of the row';
comment on column control.changes.gone is 'the row as it was last served, when it is served no more';
create index changes_by_position on control.changes (kind, position, live, symbol);
create index changes_by_time on control.changes (at, position);

-- 4. Plans, accounts, keys, credentials -------------------------------------------------------------------------------

create table accounts.tiers (
  tier text primary key,
  rank smallint not null unique,
  rate_per_minute integer not null,
  burst integer not null,
  monthly_quota bigint not null,
  depth_years integer not null
);
comment on table accounts.tiers is 'plans and their limits';
comment on column accounts.tiers.rank is 'order of the plans, the smallest first';
comment on column accounts.tiers.burst is 'calls at once: size of the token bucket';
comment on column accounts.tiers.monthly_quota is 'calls a calendar month (UTC)';
comment on column accounts.tiers.depth_years is 'years of history';
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
  next_tier text not null default 'free' references accounts.tiers,
  period_start timestamptz,
  wanted_tier text references accounts.tiers,
  wanted_at timestamptz,
  created_at timestamptz not null default now(),
  disabled_at timestamptz,
  deleted_at timestamptz
);
comment on table accounts.accounts is 'accounts, by e-mail address';
comment on column accounts.accounts.paid_until is 'after it the account counts as next_tier; null: until changed';
comment on column accounts.accounts.next_tier is 'plan after paid_until';
comment on column accounts.accounts.period_start is 'start of the paid months; null: no monthly payment';
comment on column accounts.accounts.wanted_tier is 'plan that the holder asked for; the operator decides';
comment on column accounts.accounts.disabled_at is 'since then its keys and its password are refused; null: never';
comment on column accounts.accounts.deleted_at is 'since then the account is gone for everyone but the audit log; null: never';
create unique index accounts_by_email on accounts.accounts (lower(email)) where deleted_at is null;

create table accounts.api_keys (
  id bigint generated always as identity primary key,
  account_id bigint not null references accounts.accounts,
  hash bytea not null unique,
  name text not null check (char_length(name) between 1 and 64),
  last_four text not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  rate_per_minute integer check (rate_per_minute > 0),
  tokens double precision,
  at timestamptz
);
comment on table accounts.api_keys is 'API keys of the accounts';
comment on column accounts.api_keys.hash is 'SHA-256 of the secret, which is stored nowhere';
comment on column accounts.api_keys.last_four is 'last characters of the secret, to recognise it by';
comment on column accounts.api_keys.rate_per_minute is 'calls a minute, and at once, of this key alone; null: the account''s';
comment on column accounts.api_keys.tokens is 'calls left in the key''s own bucket at the time in at; null: all';
create index api_keys_by_account on accounts.api_keys (account_id);

-- Apart from accounts, which the API's role reads.
create table accounts.passwords (
  account_id bigint primary key references accounts.accounts on delete cascade,
  hash text not null,
  changed_at timestamptz not null default now()
);
comment on table accounts.passwords is 'passwords of account holders';
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
comment on table accounts.sessions is 'dashboard sessions';
comment on column accounts.sessions.hash is 'SHA-256 of the cookie, which is stored nowhere';
comment on column accounts.sessions.address is 'IP address of the sign-in';
comment on column accounts.sessions.agent is 'User-Agent of the sign-in';
create index sessions_by_account on accounts.sessions (account_id);

create table accounts.links (
  hash bytea primary key,
  purpose text not null check (purpose in ('invitation', 'reset')),
  email text not null,
  account_id bigint references accounts.accounts on delete cascade,
  tier text not null default 'free' references accounts.tiers,
  expires_at timestamptz not null,
  used_at timestamptz
);
comment on table accounts.links is 'one-time links: invitations and password resets';
comment on column accounts.links.hash is 'SHA-256 of the secret in the link, which is stored nowhere';
comment on column accounts.links.account_id is 'account of a password reset; null for an invitation';
comment on column accounts.links.tier is 'plan of an invitation';

-- 5. Rate limits and quotas -------------------------------------------------------------------------------------------

create table accounts.limiter (
  account_id bigint primary key references accounts.accounts on delete cascade,
  tokens double precision not null,
  cap integer not null,
  at timestamptz not null default now(),
  month date not null default date_trunc('month', now() at time zone 'utc')::date,
  used bigint not null default 0,
  plan_version bigint not null default 0
) with (fillfactor = 50);
comment on table accounts.limiter is 'used rate and quota of every account, made with the account';
comment on column accounts.limiter.tokens is 'calls left in the bucket at the time in at';
comment on column accounts.limiter.cap is 'size of the bucket then: a change of tier keeps the used calls, cap - tokens';
comment on column accounts.limiter.used is 'calls counted in month (UTC)';
comment on column accounts.limiter.plan_version is 'raised by every change of tier, paid period or keys and by no call: an instance that knows it may take calls from the row without reading it';

create table accounts.spent (
  address bytea not null,
  month date not null,
  used bigint not null,
  primary key (address, month)
);
comment on table accounts.spent is 'used quota of an e-mail address whose account was deleted or renamed: signing up again does not give it back';
comment on column accounts.spent.address is 'SHA-256 of the address in lower case';

-- The next two run as the owner, so that no other role has to reach the tables they write. Temporary tables come last in
-- their search path: otherwise a session could put its own in the place of these.
create function accounts.start_limiter() returns trigger language plpgsql
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
create trigger start_limiter after insert on accounts.accounts
  for each row execute function accounts.start_limiter();

create function accounts.remember_spent() returns trigger language plpgsql
security definer set search_path = pg_catalog, accounts, pg_temp as $$
begin
  delete from accounts.spent s where s.month < date_trunc('month', now() at time zone 'utc')::date;
  insert into accounts.spent as s (address, month, used)
  select sha256(convert_to(lower(old.email), 'utf8')), l.month, l.used
  from accounts.limiter l where l.account_id = old.id
  on conflict (address, month) do update set used = greatest(s.used, excluded.used);
  return null;
end $$;
create trigger remember_spent after update of email, deleted_at on accounts.accounts
  for each row execute function accounts.remember_spent();

create function accounts.touch_limiter() returns trigger language plpgsql as $$
begin
  update accounts.limiter set plan_version = plan_version + 1
  where account_id = (to_jsonb(old) ->> case tg_table_name when 'accounts' then 'id' else 'account_id' end)::bigint;
  return null;
end $$;
create trigger touch_limiter after update of tier, paid_until, next_tier, disabled_at, deleted_at on accounts.accounts
  for each row execute function accounts.touch_limiter();
create trigger touch_limiter
  after delete or update of account_id, hash, expires_at, revoked_at, rate_per_minute on accounts.api_keys
  for each row execute function accounts.touch_limiter();

create function accounts.touch_limiters() returns trigger language plpgsql as $$
begin
  -- In account order, as admission locks them.
  perform from accounts.limiter order by account_id for update;
  update accounts.limiter set plan_version = plan_version + 1;
  return null;
end $$;
create trigger touch_limiters after update on accounts.tiers
  for each statement execute function accounts.touch_limiters();

create function accounts.period_end(start timestamptz, at timestamptz) returns timestamptz language sql stable as $$
  select min(ends) from (
    select (start at time zone 'utc' + n * interval '1 month') at time zone 'utc' as ends
    from generate_series(
      greatest(0, (extract(year from age(at, start)) * 12 + extract(month from age(at, start)))::integer - 1),
      greatest(0, (extract(year from age(at, start)) * 12 + extract(month from age(at, start)))::integer) + 2
    ) n
  ) months where ends > at
$$;
comment on function accounts.period_end is 'end of the month that began at start or a whole number of months after it (UTC)';

-- 6. Audit log and usage statistics -----------------------------------------------------------------------------------

create table accounts.audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  actor text not null default session_user,
  account_id bigint not null references accounts.accounts,
  action text not null,
  details jsonb not null default '{}'
);
comment on table accounts.audit is 'changes of accounts and keys; append-only, for its owner too';
comment on column accounts.audit.actor is 'role of the database, or the account itself';
comment on column accounts.audit.details is 'changed values; never a secret';
create index audit_by_account on accounts.audit (account_id, id);

create function accounts.refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the audit log is append-only' using errcode = 'insufficient_privilege';
end $$;
create trigger append_only before update or delete or truncate on accounts.audit
  for each statement execute function accounts.refuse_change();

create table accounts.calls (
  account_id bigint not null,
  day date not null,
  endpoint text not null,
  key_id bigint not null,
  outcome text not null,
  calls bigint not null,
  last_at timestamptz not null,
  primary key (account_id, day, endpoint, key_id, outcome)
);
comment on table accounts.calls is 'calls by day (UTC), endpoint, key and outcome: statistics for people, never limits';
comment on column accounts.calls.endpoint is 'the path''s template, or other for unknown ones';
create index calls_by_day on accounts.calls (day);
create index calls_by_key on accounts.calls (account_id, key_id, day);

-- 7. Generations for SQL users ----------------------------------------------------------------------------------------
-- Each generation has a schema of plain columns, analyst_g<N> (generation/analyst.sql). Sessions of dds_analyst begin in
-- the served one and name another by `set search_path = analyst_g<N>, analyst`.

create view analyst.generations as
  select g.id as generation, 'analyst_g' || g.id as schema, g.id = a.generation as served, g.state, g.method_version,
         g.rules, g.note, g.benchmark, g.as_of as frozen_at, g.created_at
  from control.generations g
  cross join control.active a
  where g.state <> 'building';
comment on view analyst.generations is 'generations that are built; tables of the others are incomplete';

-- 8. Functions that need the owner's rights ---------------------------------------------------------------------------

-- Settings of a role belong to the database's owner; the role that moves the pointer has no other right over it.
create function control.point_analysts() returns void language plpgsql security definer
set search_path = control, pg_temp as $$
declare served integer;
begin
  for served in select generation from active loop
    execute format('alter role dds_analyst in database %I set search_path = %I, analyst',
      current_database(), 'analyst_g' || served);
  end loop;
end $$;
comment on function control.point_analysts is 'makes the served generation the first schema of new analysts'' sessions';

create function control.data_directory() returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return current_setting('data_directory');
exception when insufficient_privilege then
  return null;
end $$;
comment on function control.data_directory is 'data directory of the server, to check its disk space; null where the owner may not read the setting';

-- 9. Privileges -------------------------------------------------------------------------------------------------------

-- Every role may ask for the schema's version, so that an older program refuses a newer database.
grant select on public.refinery_schema_history to dds_projector, dds_api;

-- The projector: control, and nothing of accounts.
grant usage on schema control to dds_projector;
grant select, insert, update, delete on all tables in schema control to dds_projector;
grant usage on sequence control.positions, control.generation_numbers to dds_projector;
revoke execute on function control.point_analysts(), control.data_directory() from public;
grant execute on function control.point_analysts(), control.data_directory() to dds_projector;

-- The API: reads control and accounts; writes limits, audit and statistics.
grant usage on schema control, accounts to dds_api;
grant select on control.generations, control.active, control.fact_sets, control.journal, control.changes to dds_api;
grant select on accounts.tiers, accounts.accounts, accounts.api_keys to dds_api;
grant update (tokens, at) on accounts.api_keys to dds_api;
grant select, update on accounts.limiter to dds_api;
grant select, insert on accounts.audit to dds_api;
grant select, insert, update, delete on accounts.calls to dds_api;

-- The dashboard: accounts, and nothing of the market.
grant usage on schema accounts to dds_dashboard;
grant select on accounts.tiers, accounts.calls to dds_dashboard;
grant select, insert (email, tier, paid_until), update (email, tier, paid_until, next_tier, period_start, wanted_tier, wanted_at, deleted_at)
  on accounts.accounts to dds_dashboard;
grant select, insert (account_id, hash, name, last_four, expires_at, rate_per_minute), update (revoked_at, expires_at)
  on accounts.api_keys to dds_dashboard;
-- The row is locked while its account changes, and its version raised so that the next call is decided on anew.
grant select, update (plan_version) on accounts.limiter to dds_dashboard;
grant select, insert, update, delete on accounts.passwords to dds_dashboard;
grant select, insert, update (seen_at), delete on accounts.sessions to dds_dashboard;
grant select, update (used_at) on accounts.links to dds_dashboard;
grant select, insert on accounts.audit to dds_dashboard;
revoke execute on function accounts.remember_spent(), accounts.start_limiter() from public;

-- Analysts: the views of generations.
grant usage on schema analyst to dds_analyst;
grant select on analyst.generations to dds_analyst;
