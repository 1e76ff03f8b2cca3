-- Generations that were built before find a day's payments like those that are built today (generation/read_indexes.sql).
do $$
declare schema text;
begin
 for schema in select schemaname from pg_indexes where indexname = 'dividends_by_ex_date' and schemaname ~ '^read_g[0-9]+$' loop
    execute format('drop index %I.dividends_by_ex_date', schema);
    execute format('create index dividends_by_ex_date on %I.dividends (ex_date)', schema);
 end loop;
 for schema in select schemaname from pg_indexes where indexname = 'dividends_by_payment_date' and schemaname ~ '^read_g[0-9]+$' loop
    execute format('drop index %I.dividends_by_payment_date', schema);
    execute format('create index dividends_by_payment_date on %I.dividends (payment_date) where payment_date is not null', schema);
 end loop;
end $$;
