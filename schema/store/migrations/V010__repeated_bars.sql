-- In every fact set: superseded bars are collected in numbered rows. New fact sets have them from generation/.
do $$
declare name text;
begin
  set local role dds_projector;
  for name in select f.name from control.fact_sets f loop
    execute format('alter table %I.superseded_bars add column part integer', name);
    execute format('update %1$I.superseded_bars s set part = n.part from (select ctid, row_number() over (partition by symbol, source, year) as part from %1$I.superseded_bars) n where n.ctid = s.ctid', name);
    execute format('drop index %I.superseded_bars_by_symbol', name);
    execute format('alter table %I.superseded_bars alter column part set not null, add primary key (symbol, source, year, part)', name);
  end loop;
  reset role;
end $$;
