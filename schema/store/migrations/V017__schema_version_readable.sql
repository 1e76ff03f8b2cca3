-- The roles may ask which schema the database is at, so that an older program refuses a newer database.
grant select on public.refinery_schema_history to dds_projector, dds_api;
