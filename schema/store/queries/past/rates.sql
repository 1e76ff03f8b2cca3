-- $1 currency pairs, such as EURUSD; $2 first and $3 last year. All exchange rates of these pairs in these years, in the
-- columns of facts.sql. The name of the fact set replaces {facts}.
select 'records' as part, symbol, source, kind, null::integer as year, null::bigint as number, packed,
  null::bytea as close, null::bytea as range, null::bytea as volume, null::bytea as extra, null::bytea as versions,
  null::bigint as ended, null::text as state
from {facts}.records
where kind = 'fx' and left(symbol, 6) = any ($1) and right(symbol, 4)::integer between $2 and $3
union all
select 'superseded_records', symbol, source, kind, null, null, packed, null, null, null, null, null, null, null
from {facts}.superseded_records
where kind = 'fx' and left(symbol, 6) = any ($1) and right(symbol, 4)::integer between $2 and $3
