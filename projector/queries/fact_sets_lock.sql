-- Waits for the writers of every fact set and excludes new ones. Writers clear the symbols that were dirty at their
-- start.
select name from fact_sets order by name for update
