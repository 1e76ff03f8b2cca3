insert into dirty (fact_set, symbol, reference)
select distinct $1, symbol, false from staged_bars
on conflict do nothing
