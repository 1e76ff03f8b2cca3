-- A role that reads and nothing else. Each generation has a schema of plain columns for it, analyst_g<N>; its sessions begin
-- in that of the generation that is served then, and name another by `set search_path = analyst_g<N>, analyst`.
do $$
begin
  create role dds_analyst login;
exception when duplicate_object or unique_violation then null;
end $$;

create schema analyst;
create view analyst.generations as
  select g.id as generation, 'analyst_g' || g.id as schema, g.id = a.generation as served, g.state, g.method_version,
         g.rules, g.note, g.benchmark, g.as_of as frozen_at, g.created_at
  from control.generations g
  cross join control.active a;
grant usage on schema analyst to dds_analyst;
grant select on analyst.generations to dds_analyst;

-- Settings of a role belong to the database's owner: whoever flips the pointer has no other right over the role.
create function control.point_analysts() returns void language plpgsql security definer
set search_path = control, pg_temp as $$
declare served integer;
begin
  for served in select generation from active loop
    execute format('alter role dds_analyst in database %I set search_path = %I, analyst',
      current_database(), 'analyst_g' || served);
  end loop;
end $$;
comment on function control.point_analysts is 'lets new sessions of analysts begin in the served generation';
revoke execute on function control.point_analysts from public;
grant execute on function control.point_analysts to dds_projector;
