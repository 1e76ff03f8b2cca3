-- Rights on a database are not part of its contents: one made from a template or a dump has lost them.
do $$
begin
  execute format('grant connect on database %I to dds_projector, dds_api, dds_dashboard', current_database());
  execute format('grant create on database %I to dds_projector', current_database());
end $$;
