-- Newest price of each source, for the age of the data by feed.

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
