-- A generation's number is given once: what clients and caches keep of a dropped one, named by number and sequence, must fit
-- no other.
create sequence control.generation_numbers as integer;
select setval('control.generation_numbers', (select coalesce(max(id), 1) from control.generations));
grant usage on sequence control.generation_numbers to dds_projector;

-- Analysts are told of generations once these are built: until then their tables are half empty, and truncated when they end.
create or replace view analyst.generations as
  select g.id as generation, 'analyst_g' || g.id as schema, g.id = a.generation as served, g.state, g.method_version,
         g.rules, g.note, g.benchmark, g.as_of as frozen_at, g.created_at
  from control.generations g
  cross join control.active a
  where g.state <> 'building';
