-- Forgets changes of more than 400 days ago; a copy that is older has to be made anew.
with old as (delete from changes where at < now() - interval '400 days' returning position, at)
update journal
set begins = greatest(begins, (select max(position) from old)), begun_at = greatest(begun_at, (select max(at) from old))
where exists (select from old)
