-- The index of holdings by symbol (generation/read_indexes.sql) for the generations that exist already. Without it, the
-- funds that hold a security would be slow to read until the next rebuild.
do $$
declare generation text;
begin
  for generation in
    select nspname from pg_namespace
    where nspname ~ '^read_g[0-9]+$' and to_regclass(format('%I.holdings', nspname)) is not null
  loop
    execute format(
      'create index if not exists holdings_by_symbol on %I.holdings (symbol collate "C", etf_symbol, as_of) '
      'where symbol is not null', generation);
  end loop;
end $$;
