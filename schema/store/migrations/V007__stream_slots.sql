-- Open change streams, counted over all instances of the API. Unlogged, because a crash of Postgres ends their leases.

create unlogged table accounts.stream_slots (
  account_id bigint not null references accounts.accounts on delete cascade,
  slot integer not null,
  instance bigint not null,
  expires_at timestamptz not null,
  primary key (account_id, slot)
);
comment on table accounts.stream_slots is 'open change streams of the accounts, each with a lease that its instance renews';
comment on column accounts.stream_slots.slot is 'number from 1 to the limit of the plan';
comment on column accounts.stream_slots.instance is 'random id of the process that serves the stream';
comment on column accounts.stream_slots.expires_at is 'end of the lease; after it another stream may take the slot';

grant select, insert, update, delete on accounts.stream_slots to dds_api;

comment on column control.changes.kind is 'read table or value of the row; symbols: the symbol no longer names the security in id';
