-- $1 generation, $2 month, $3 sources with adjusted closes, $4 ex-dates on which they agree, $5 ex-dates. Stores the quality
-- of each source with rows in visible runs, unless the month has it already. Events of dividends are counted once, from the
-- position of the month before on. The first month has none: they are those of the first loads.
with resting as (
  select distinct symbol, source from security_sources($1, null, null)
), active as (
  select type, count(*) as active from stocks where is_active group by type
), covered as (
  select r.source, s.type, count(*) as covered from resting r join stocks s on s.symbol = r.symbol and s.is_active
  group by r.source, s.type
), coverage as (
  select n.source, json_object_agg(
    a.type, json_build_object('covered', coalesce(c.covered, 0), 'active', a.active) order by a.type
  ) as coverage
  from (select distinct source from resting) n
  cross join active a
  left join covered c on c.source = n.source and c.type = a.type
  group by n.source
), hidden as materialized (
  select run from run_states() where state <> 'visible'
), loaded as (
  select f.source, sum(f.rows)::bigint as rows from frames f
  where f.kind <> 'run' and f.source <> 'manual' and (
    f.run not in (select h.run from hidden h)
    or exists (select from batch_runs b where b.frame = f.frame and b.run not in (select h.run from hidden h))
  )
  group by f.source
), events as (
  select coalesce(n.after, n.before) ->> 'source' as source, n.event, (n.symbol, n.record) as dividend,
    case when n.event = 'declared' and not n.is_backfill then extract(epoch from
      n.at - (n.after ->> 'declaration_date')::date::timestamp at time zone 'America/New_York'
    ) / 86400 end as days
  from notices n
  where n.kind = 'dividends' and n.cause = 'data'
    and n.position > (select max(m.position) from quality_months m)
), counted as (
  select source, count(distinct dividend) filter (where event = 'corrected') as corrected,
    count(distinct dividend) filter (where event = 'cancelled') as cancelled, count(days) as declared,
    round(percentile_disc(0.5) within group (order by days), 2) as lag_median_days,
    round(percentile_disc(0.95) within group (order by days), 2) as lag_p95_days
  from events group by source
)
insert into quality_months (month, source, as_of, position, rows, coverage, agreeing, ex_dates, corrected, cancelled,
  declared, lag_median_days, lag_p95_days)
select $2, l.source, v.as_of, v.position, l.rows, coalesce(g.coverage, '{}'), a.agreeing, a.ex_dates,
  coalesce(c.corrected, 0), coalesce(c.cancelled, 0), coalesce(c.declared, 0), c.lag_median_days, c.lag_p95_days
from version v
cross join loaded l
left join coverage g on g.source = l.source
left join counted c on c.source = l.source
left join unnest($3::text[], $4::bigint[], $5::bigint[]) a (source, agreeing, ex_dates) on a.source = l.source
where not exists (select from quality_months m where m.month = $2)
