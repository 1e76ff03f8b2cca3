-- $1 canonical symbols or null for all; $2 position, $3 true if served, $4 symbol and $5 id of the notice before the page;
-- $6 maximum notices. Each branch has an index of its own.
(
  select * from notices
  where $1::text[] is null and position >= $2::bigint
    and (position, true, symbol, id) > ($2, $3::boolean, $4::text, $5::text)
  order by position, symbol, id
  limit $6
)
union all
(
  select * from notices
  where symbol = any ($1) and position >= $2 and (position, true, symbol, id) > ($2, $3, $4, $5)
  order by position, symbol, id
  limit $6
)
