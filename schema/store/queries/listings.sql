-- $1 indexes of look-ups and $2 their addresses. Listings of each address that several securities have. Each of these
-- securities has a key of its own in `symbols`: the address, a space and its symbol.
select c.ordinal, l.symbol, l.exchange, l.currency
from unnest($1::integer[], $2::text[]) as c (ordinal, address)
cross join lateral (
  select s.canonical from symbols s where s.symbol > c.address || ' ' and s.symbol < c.address || '!' limit 50
) n
-- Looked up one by one, because an address has few listings.
cross join lateral (select * from stocks t where t.symbol = n.canonical limit 1) l
order by c.ordinal, l.symbol
