-- As in generation/read_tables.sql: every ex-date writes a security's factors anew.
do $$
declare generation text;
begin
  for generation in select nspname from pg_namespace where nspname ~ '^read_g[0-9]+$' loop
    execute format('alter table %I.factors alter column factors set compression lz4', generation);
  end loop;
exception when feature_not_supported then
  null;
end $$;
