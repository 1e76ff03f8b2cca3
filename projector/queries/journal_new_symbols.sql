-- $1 symbols, $2 position. Records one change for all rows of a symbol that had neither rows nor changes before.
-- Returns these symbols.
insert into changes (kind, symbol, id, position, at)
select '{table}', n.symbol, '', $2::bigint, clock_timestamp()
from unnest($1::text[]) as n (symbol)
where exists (select from {table} d where d.symbol = n.symbol and d.id is not null)
  and not exists (select from changes c where c.kind = '{table}' and c.symbol = n.symbol)
  and not exists (select from {before} b where b.symbol = n.symbol and b.id is not null)
returning symbol
