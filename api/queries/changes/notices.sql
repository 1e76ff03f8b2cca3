-- $1 canonical symbols or null for all; $2 position, $3 true if served, $4 symbol and $5 id of the notice before the page;
-- $6 maximum notices; $7 events and $8 causes, or null for all; $9 true with backfilled events. Each branch has an index of
-- its own. A notice before a rename has the former symbol.
(
  select * from notices
  where $1::text[] is null and position >= $2::bigint
    and (position, true, symbol, id) > ($2, $3::boolean, $4::text, $5::text)
    and ($7::text[] is null or event = any ($7)) and ($8::text[] is null or cause = any ($8))
    and ($9::boolean or not is_backfill)
  order by position, symbol, id
  limit $6
)
union all
(
  select * from notices
  where symbol = any (array(select s.symbol from symbols s where s.canonical = any ($1) union select unnest($1)))
    and position >= $2 and (position, true, symbol, id) > ($2, $3, $4, $5)
    and ($7 is null or event = any ($7)) and ($8 is null or cause = any ($8)) and ($9 or not is_backfill)
  order by position, symbol, id
  limit $6
)
