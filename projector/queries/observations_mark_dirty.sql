insert into dirty (fact_set, symbol, reference)
select distinct $1, symbol, kind = 'security' from staged_observations
on conflict do nothing
