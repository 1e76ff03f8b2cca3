-- Waits for the writers of every fact set, who clear what was dirty when they began, and keeps them out.
select name from fact_sets order by name for update
