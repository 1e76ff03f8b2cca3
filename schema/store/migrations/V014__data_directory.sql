-- Where Postgres keeps its data, so that the projector can look for room before it builds a generation. An owner that may
-- not know it leaves the projector without an answer.
create function control.data_directory() returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return current_setting('data_directory');
exception when insufficient_privilege then
  return null;
end $$;
revoke all on function control.data_directory() from public;
grant execute on function control.data_directory() to dds_projector;
