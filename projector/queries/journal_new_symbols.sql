-- $1 symbols, $2 position. A symbol that was never told of is one change, however many rows it has.
insert into changes (kind, symbol, id, position, at)
select '{table}', d.symbol, '', $2::bigint, clock_timestamp()
from (select distinct symbol from {table} where symbol = any ($1::text[]) and id is not null) d
where not exists (select from changes c where c.kind = '{table}' and c.symbol = d.symbol)
  and not exists (select from {before} b where b.symbol = d.symbol and b.id is not null)
returning symbol
