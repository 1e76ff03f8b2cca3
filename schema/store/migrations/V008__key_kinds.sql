-- Kind of each API key. The key of the reference page ends with the session; a holder may give another key the same name.
alter table accounts.api_keys add column kind text not null default 'holder' check (kind in ('holder', 'reference_page'));
comment on column accounts.api_keys.kind is 'holder: made by the holder or the operator; reference_page: made for /docs, ends with the session';

grant insert (kind) on accounts.api_keys to dds_dashboard;
