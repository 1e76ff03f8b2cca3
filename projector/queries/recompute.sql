-- The empty symbol wakes the projector while the log is idle.
insert into dirty (generation, symbols, reference)
select id, array[''], true from generations where state in ('building', 'tailing')
