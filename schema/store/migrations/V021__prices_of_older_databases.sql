-- Tables of bars and prices that were made before are kept like those that are made today (generation/*.sql).
do $$
declare schema text;
begin
  for schema in select name from control.fact_sets loop
    execute format('alter table %I.bars set (autovacuum_vacuum_scale_factor = 0.05)', schema);
  end loop;
  for schema in select nspname from pg_namespace where nspname ~ '^read_g[0-9]+$' loop
    execute format('alter table %I.prices set (autovacuum_vacuum_scale_factor = 0.05)', schema);
    execute format('alter table %I.prices drop constraint prices_pkey, add primary key (symbol, year) include (digest)', schema);
  end loop;
end $$;
