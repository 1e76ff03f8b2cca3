-- Counts of the rows that a restore would overwrite.
select (select coalesce(max(checkpoint), 0) from control.fact_sets) as checkpoint,
       (select count(*) from accounts.accounts) as accounts,
       (select count(*) from control.source_policy) as policy
