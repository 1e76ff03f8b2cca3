-- Licences of the sources, the sources of each security, and the quality of the data by month.

create table control.source_licences (
  source text not null,
  licence text not null,
  url text,
  attribution text,
  redistribution boolean not null,
  stated_at timestamptz not null default clock_timestamp(),
  stated_by text not null default session_user,
  primary key (source, stated_at)
);
comment on table control.source_licences is 'licences that the operator stated, append-only; the newest of a source counts';
comment on column control.source_licences.redistribution is 'false: bulk answers, exports and pages without a key leave out the securities that rest on the source';

create view control.licences as
  select distinct on (source) * from control.source_licences order by source, stated_at desc;
comment on view control.licences is 'licence of each source that has one';

-- A security rests on each source with a row of it that counts, also if the row of another source is used, because the
-- rules compare the rows of all sources.
create function control.security_sources(of_generation integer, of_symbols text[], of_sources text[])
returns table (symbol text, kind text, source text) language plpgsql stable as $$
declare facts text;
begin
  select g.fact_set into strict facts from control.generations g where g.id = of_generation;
  return query execute format($query$
    with addresses as (
      select s.symbol, s.canonical from %1$I.symbols s where $1 is null or s.canonical = any ($1)
    )
    select a.canonical, r.kind, r.source from addresses a join %2$I.records r using (symbol)
    where r.kind not in ('fx', 'session') and ($2 is null or r.source = any ($2))
    union
    select a.canonical, 'price', b.source from addresses a join %2$I.bars b using (symbol)
    where $2 is null or b.source = any ($2)
  $query$, 'read_g' || of_generation, facts) using of_symbols, of_sources;
end $$;
comment on function control.security_sources is 'sources on which securities rest, by kind of rows; null: all symbols, all sources';

create function control.left_out(of_generation integer)
returns table (symbol text, sources text[]) language plpgsql stable as $$
declare closed text[];
begin
  select array_agg(l.source) into closed from control.licences l where not l.redistribution;
  if closed is not null then
    return query select s.symbol, array_agg(distinct s.source order by s.source)
      from control.security_sources(of_generation, null, closed) s group by s.symbol;
  end if;
end $$;
comment on function control.left_out is 'securities that rest on a source which must not be redistributed, with these sources';

create function control.loaded_sources(of_generation integer)
returns table (source text, kind text) language plpgsql stable as $$
begin
  return query execute (
    select format('select distinct source, kind from %I.frames where kind <> ''run''', g.fact_set)
    from control.generations g where g.id = of_generation
  );
end $$;
comment on function control.loaded_sources is 'sources with loaded rows, by kind of rows';

grant select, insert on control.source_licences to dds_projector;
grant select on control.licences to dds_projector;
grant select on control.source_licences, control.licences to dds_api;
revoke execute on function control.security_sources, control.left_out, control.loaded_sources from public;
grant execute on function control.security_sources, control.left_out, control.loaded_sources to dds_projector, dds_api;
