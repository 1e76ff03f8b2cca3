-- $1 symbols, $2 the first ex-date of each one's rows that were replaced (null: all of them), $3 position.
-- A symbol that was never told of is one change, however many rows it has.
insert into changes (kind, symbol, id, position, at)
select '{table}', d.symbol, '', $3::bigint, clock_timestamp()
from (
  select distinct t.symbol from {table} t
  join unnest($1::text[], $2::date[]) as stale (symbol, since) on t.symbol = stale.symbol and stale.since is null
  where t.id is not null
) d
where not exists (select from changes c where c.kind = '{table}' and c.symbol = d.symbol)
  and not exists (select from {before} b where b.symbol = d.symbol and b.id is not null)
