-- Deletes changes older than 400 days, and notices older than 90 days. A client's copy that is older must be created
-- again.
with expired as (delete from notices where at < now() - interval '90 days'),
old as (delete from changes where at < now() - interval '400 days' returning position, at)
update journal
set begins = greatest(begins, (select max(position) from old)), begun_at = greatest(begun_at, (select max(at) from old))
where exists (select from old)
