-- A generation's number is given once: what clients and caches keep of a dropped one, named by number and sequence, must fit
-- no other.
create sequence control.generation_numbers as integer;
select setval('control.generation_numbers', (select coalesce(max(id), 1) from control.generations));
grant usage on sequence control.generation_numbers to dds_projector;
