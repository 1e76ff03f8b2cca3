-- $1 canonical symbols or null for all; $2 position, $3 true if served, and $4 symbol of the change before the page; $5
-- maximum changes. The identity is null for a removed security.
select c.position, c.symbol, v.as_of, i.identity
from (
  select * from changes
  where kind = 'events' and (position, live, symbol) > ($2::bigint, $3::boolean, $4::text)
    and ($1::text[] is null or symbol = any ($1))
  order by position, live, symbol
  limit $5
) c
cross join version v
-- Looked up one by one, because a page has few securities.
left join lateral (select * from identities o where o.symbol = c.symbol limit 1) i on true
order by c.position, c.live, c.symbol
