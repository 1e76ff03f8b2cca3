-- Rights on a database and its roles' settings are not part of its contents: one made from a template or a dump has lost them.
do $$
begin
  execute format('revoke temporary on database %I from public', current_database());
  execute format('grant connect on database %I to dds_projector, dds_api, dds_dashboard, dds_analyst', current_database());
  execute format('grant create, temporary on database %I to dds_projector', current_database());
  execute format('alter role dds_analyst in database %I set default_transaction_read_only = on', current_database());
  execute format('alter role dds_analyst in database %I set idle_in_transaction_session_timeout = ''10min''',
    current_database());
  -- A statement without end keeps a dropped generation's tables; a session that means it sets another.
  execute format('alter role dds_analyst in database %I set statement_timeout = ''10min''', current_database());
end $$;
-- Large objects are the one thing that any role of a database may write.
revoke execute on function lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea) from public;
select control.point_analysts();
