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
    select format($query$
      with loaded as materialized (select distinct source, kind from %1$I.frames where kind <> 'run')
      select l.source, l.kind from loaded l
      where case l.kind
        when 'price' then exists (select from %1$I.bars b where b.source = l.source)
        else exists (select from %1$I.records r where r.source = l.source and r.kind = l.kind)
      end
    $query$, g.fact_set)
    from control.generations g where g.id = of_generation
  );
end $$;
comment on function control.loaded_sources is 'sources with rows that count, by kind of rows';

grant select, insert on control.source_licences to dds_projector;
grant select on control.licences to dds_projector;
grant select on control.source_licences, control.licences to dds_api;
revoke execute on function control.security_sources, control.left_out, control.loaded_sources from public;
grant execute on function control.security_sources, control.left_out, control.loaded_sources to dds_projector, dds_api;

create table control.quality_months (
  month date not null,
  source text not null,
  as_of date not null,
  position bigint not null,
  rows bigint not null,
  coverage json not null,
  agreeing bigint,
  ex_dates bigint,
  corrected bigint not null,
  cancelled bigint not null,
  declared bigint not null,
  lag_median_days numeric,
  lag_p95_days numeric,
  measured_at timestamptz not null default clock_timestamp(),
  primary key (month, source)
);
comment on table control.quality_months is 'quality of each source by month, measured once, when the market date has passed into the next month';
comment on column control.quality_months.month is 'first day of the month';
comment on column control.quality_months.as_of is 'market date of the measurement';
comment on column control.quality_months.position is 'position of the journal up to which the events of dividends are counted, since the position of the month before';
comment on column control.quality_months.rows is 'loaded rows, from the first load on';
comment on column control.quality_months.coverage is 'by type of security: active securities, and those with a row of the source';
comment on column control.quality_months.agreeing is 'ex-dates on which the adjusted closes of the source agree with the computed factor (R40); null: it has no adjusted closes';
comment on column control.quality_months.declared is 'dividends whose lag was measured';
comment on column control.quality_months.lag_median_days is 'from the begin of the declaration date in New York to the publication of the dividend';

grant select, insert on control.quality_months to dds_projector;
grant select on control.quality_months to dds_api;
