-- Restrictions of a database that has only accounts.
revoke usage on schema control from dds_api;
do $$
begin
  execute format('revoke all on database %I from public, dds_projector, dds_analyst', current_database());
end $$;
