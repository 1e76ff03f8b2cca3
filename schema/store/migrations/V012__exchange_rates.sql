-- Indexes for the fact sets and generations that exist already: of exchange rates, and of splits by ex-date. New ones have
-- them from generation/.
do $$
declare name text;
begin
  set local role dds_projector;
  for name in select f.name from control.fact_sets f loop
    execute format('create index records_of_rates on %I.records (left(symbol, 6)) where kind = ''fx''', name);
    execute format('create index superseded_records_of_rates on %I.superseded_records (left(symbol, 6)) where kind = ''fx''', name);
  end loop;
  for name in
    select nspname from pg_namespace
    where nspname ~ '^read_g[0-9]+$' and to_regclass(format('%I.splits', nspname)) is not null
  loop
    execute format('create index if not exists splits_by_ex_date on %I.splits (ex_date)', name);
  end loop;
  reset role;
end $$;
