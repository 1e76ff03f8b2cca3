-- Grants on a database and settings of its roles are not part of its contents. A database that was created from a
-- template or a dump lacks them.
do $$
begin
  execute format('revoke temporary on database %I from public', current_database());
  execute format('grant connect on database %I to dds_projector, dds_api, dds_dashboard, dds_analyst', current_database());
  execute format('grant create, temporary on database %I to dds_projector', current_database());
  grant usage on schema control, accounts to dds_api;
  grant usage on schema accounts to dds_dashboard;
  grant select on public.refinery_schema_history to dds_dashboard;
  execute format('alter role dds_analyst in database %I set default_transaction_read_only = on', current_database());
  execute format('alter role dds_analyst in database %I set idle_in_transaction_session_timeout = ''10min''',
    current_database());
  -- A statement without end would keep the tables of a dropped generation. A session can set a longer timeout.
  execute format('alter role dds_analyst in database %I set statement_timeout = ''10min''', current_database());
end $$;
-- Large objects are the only data that any role of a database may write.
revoke execute on function lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea) from public;
select control.point_analysts();
