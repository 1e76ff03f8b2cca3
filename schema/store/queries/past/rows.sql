-- $1 symbols, $2 kinds and $3 sources of rows of records; $4 symbols, $5 sources and $6 years of rows of bars. All
-- observations of these rows, in the columns of facts.sql. The name of the fact set replaces {facts}, and
-- the text of states.sql is the last part.
with of_records as materialized (
  select * from unnest($1::text[], $2::text[], $3::text[]) as k (symbol, kind, source)
), of_bars as materialized (
  select * from unnest($4::text[], $5::text[], $6::integer[]) as k (symbol, source, year)
)
select 'records' as part, r.symbol, r.source, r.kind, null::integer as year, null::bigint as number, r.packed,
  null::bytea as close, null::bytea as range, null::bytea as volume, null::bytea as extra, null::bytea as versions,
  null::bigint as ended, null::text as state
from of_records k
join {facts}.records r on r.symbol = k.symbol and r.kind = k.kind and r.source = k.source
union all
select 'superseded_records', r.symbol, r.source, r.kind, null, null, r.packed, null, null, null, null, null, null, null
from of_records k
join {facts}.superseded_records r on r.symbol = k.symbol and r.kind = k.kind and r.source = k.source
union all
select 'bars', b.symbol, b.source, null, b.year, b.digest, b.days, b.close, b.range, b.volume, b.extra, b.versions, null, null
from of_bars k
join {facts}.bars b on b.symbol = k.symbol and b.source = k.source and b.year = k.year
union all
select 'superseded_bars', b.symbol, b.source, null, b.year, null, b.packed, null, null, null, null, null, null, null
from of_bars k
join {facts}.superseded_bars b on b.symbol = k.symbol and b.source = k.source and b.year = k.year
union all
{states}
