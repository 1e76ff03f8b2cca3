-- States of runs in one way, and figures that are computed with exchange rates rest on the sources of the rates.

-- A body in PL/pgSQL finds the tables of the fact set in the search path of the caller.
create function control.run_states() returns table (run text, state text) language plpgsql stable as $$
begin
  return query select distinct on (c.run) c.run, c.state from run_changes c
    order by c.run, (c.sequence = 0) desc, c.sequence desc;
end $$;
comment on function control.run_states is 'newest state of each run of the fact set that was ever held or excluded; a fixed state stays';
revoke execute on function control.run_states from public;
grant execute on function control.run_states to dds_projector;

create or replace function control.left_out(of_generation integer)
returns table (symbol text, sources text[]) language plpgsql stable as $$
declare closed text[]; facts text;
begin
  select array_agg(l.source) into closed from control.licences l where not l.redistribution;
  if closed is null then return; end if;
  select g.fact_set into strict facts from control.generations g where g.id = of_generation;
  return query execute format($query$
    with rates as (
      select distinct r.source from %2$I.records r where r.kind = 'fx' and r.source = any ($2)
    ), converted as (
      select s.symbol from %1$I.stocks s join %1$I.metrics m using (symbol)
      where m.flags::jsonb ? 'converted' or s.reporting_market_cap is distinct from s.market_cap
        or exists (select from %1$I.dividends d where d.symbol = s.symbol and d.currency <> s.currency)
        or exists (select from %1$I.fundamentals f where f.symbol = s.symbol and f.reported_currency <> s.currency)
    ), resting as (
      select s.symbol, s.source from control.security_sources($1, null, $2) s
      union
      select c.symbol, r.source from converted c cross join rates r
    )
    select r.symbol, array_agg(r.source order by r.source) from resting r group by r.symbol
  $query$, 'read_g' || of_generation, facts) using of_generation, closed;
end $$;
comment on function control.left_out is 'securities that rest on a source which must not be redistributed, with these sources';
