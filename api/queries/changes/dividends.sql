-- $1 canonical symbols or null for all; $2 first ex-date; $3 position after which rows changed; $4 to $7 position, true
-- if served, symbol and id of the row before the page, or null; $8 maximum rows. Removed rows have their last served
-- values. At each position, removed rows come first, because a moved row is removed under one symbol and added under
-- another.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, t.*
from version v
left join (
  select c.position as change_position, c.live as change_live, c.symbol as change_symbol, d.*
  from (
    -- Sorted separately, so that only the rows of the page are looked up.
    select * from changes
    where kind = 'dividends' and position > $3 and ($1::text[] is null or symbol = any ($1))
      and ($4::bigint is null or (position, live, symbol) >= ($4, $5::boolean, $6::text))
    order by position, live, symbol
  ) c
  cross join lateral (
    select * from dividends d
    where c.id <> '' and c.live and d.symbol = c.symbol and d.ex_date = c.date and d.id = c.id
    union all
    select * from dividends d
    where c.id = '' and d.symbol = c.symbol and d.id is not null
      and not exists (select from changes o where o.kind = 'dividends' and o.symbol = d.symbol and o.id = d.id)
    union all
    select * from jsonb_populate_record(null::dividends, c.gone) d where not c.live
  ) d
  where d.ex_date >= $2
    and ($4::bigint is null or (c.position, c.live, c.symbol, d.id) > ($4, $5::boolean, $6::text, $7::text))
  order by c.position, c.live, c.symbol, d.id
  limit $8
) t on true
order by t.change_position, t.change_live, t.change_symbol, t.id
