-- $1 symbols. Facts of these symbols and of all directly or indirectly linked symbols, including replaced facts. One
-- statement reads all parts, so that they have one snapshot. The name of the fact set replaces {facts},
-- and the text of states.sql is the last part.
with recursive related as (
  select distinct symbol collate "C" as symbol from unnest($1::text[]) as asked (symbol)
  union
  select linked.symbol
  from related
  -- Offset 0 keeps the look-up by symbol: joined with all symbols at once, Postgres may read every link.
  cross join lateral (
    select other.symbol
    from {facts}.symbol_links own
    join {facts}.symbol_links other on other.link = own.link
    where own.symbol = related.symbol
    offset 0
  ) linked
), wanted as materialized (
  select array_agg(symbol) as symbols from related
)
select 'records' as part, symbol, source, kind, null::integer as year, null::bigint as number, packed,
  null::bytea as close, null::bytea as range, null::bytea as volume, null::bytea as extra, null::bytea as versions,
  null::bigint as ended, null::text as state
from {facts}.records
where symbol = any ((select symbols from wanted)::text[])
union all
select 'superseded_records', symbol, source, kind, null, null, packed, null, null, null, null, null, null, null
from {facts}.superseded_records
where symbol = any ((select symbols from wanted)::text[])
union all
select 'bars', symbol, source, null, year, digest, days, close, range, volume, extra, versions, null, null
from {facts}.bars
where symbol = any ((select symbols from wanted)::text[])
union all
select 'superseded_bars', symbol, source, null, year, null, packed, null, null, null, null, null, null, null
from {facts}.superseded_bars
where symbol = any ((select symbols from wanted)::text[])
union all
select 'dividend_feeds', null, source, null, year, sequence, null, null, null, null, null, null, ended, null
from {facts}.dividend_feeds
union all
{states}
