-- $1 spellings of the symbol. Holdings with any of its symbols in the newest snapshot of each active fund, largest
-- weight first.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, found.canonical, null::text as sync_from, 0::bigint as held, t.*
from version v
left join lateral (
  select s.canonical
  from unnest($1::text[]) with ordinality as c (symbol, ordinal) join symbols s using (symbol)
  order by c.ordinal limit 1
) found on true
left join lateral (
  select found.canonical as symbol, h.etf_symbol, e.name as etf_name, h.rank, h.weight, h.shares, h.market_value,
    h.currency, h.as_of
  from symbols n
  join holdings h on h.symbol = n.symbol
  join etfs e on e.symbol = h.etf_symbol and e.holdings_as_of = h.as_of and e.is_active
  where n.canonical = found.canonical
) t on true
order by t.weight desc, t.etf_symbol, t.rank
