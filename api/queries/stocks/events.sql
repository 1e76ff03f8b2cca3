-- $1 spellings of the symbol. Ticker events are in the identity.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated,
  found.canonical, i.identity, t.*
from version v
left join lateral (
  select s.canonical
  from unnest($1::text[]) with ordinality as c (symbol, ordinal) join symbols s using (symbol)
  order by c.ordinal limit 1
) found on true
left join identities i on i.symbol = found.canonical
left join lateral (
  select s.symbol, s.ex_date as date,
    case when s.type in ('spin_off', 'rights', 'class_distribution') then s.type else 'split' end as type,
    s.status, s.id, null::text as from_symbol, null::text as to_symbol, s.ratio, s.price_factor,
    null::numeric as amount, null::text as currency
  from splits s
  where s.symbol = found.canonical and s.status <> 'cancelled'
  union all
  select d.symbol, d.ex_date, case when d.type = 'spin_off' then d.type else 'special_dividend' end,
    case when d.ex_date <= v.as_of then 'effective' else 'announced' end, d.id, null, null, null, d.price_factor,
    d.amount, d.currency
  from dividends d
  where d.symbol = found.canonical and d.type in ('special', 'supplemental', 'liquidation', 'spin_off')
    and d.status in ('declared', 'paid')
) t on true
