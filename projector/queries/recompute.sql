-- The empty symbol asks the projector to look again although the log is quiet.
insert into dirty (generation, symbols, reference)
select id, array[''], true from generations where state in ('building', 'tailing')
