-- Newest bars of each source, for the age of the data by feed.

-- In every fact set: the newest sessions are read from the index alone. New fact sets have it from generation/.
do $$
declare name text;
begin
  set local role dds_projector;
  for name in select f.name from control.fact_sets f loop
    execute format('drop index %I.bars_by_year', name);
    execute format('create index bars_by_year on %I.bars (year, last_day) include (symbol, source)', name);
  end loop;
  reset role;
end $$;

create function control.newest_bars(of_generation integer, since_year integer)
returns table (symbol text, source text, day date) language plpgsql stable as $$
begin
  return query execute (
    select format($query$
      select s.canonical, b.source, date '0001-01-01' + max(b.last_day) - 1
      from %2$I.bars b join %1$I.symbols s using (symbol)
      where b.year >= $1 and b.last_day is not null group by s.canonical, b.source
    $query$, 'read_g' || of_generation, g.fact_set)
    from control.generations g where g.id = of_generation
  ) using since_year;
end $$;
comment on function control.newest_bars is 'newest session with a live bar, by security and source, since a year';

revoke execute on function control.newest_bars from public;
grant execute on function control.newest_bars to dds_api;
