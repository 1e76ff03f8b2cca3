-- The empty symbol asks the projector to look again although the log is quiet.
insert into dirty (generation, symbol, reference)
select id, '', true from generations where state in ('building', 'tailing')
on conflict do nothing
