-- $1 spellings of the fund's symbol; $2 day or null. The newest snapshot up to this day.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated,
  found.canonical, t.*, s.dividend_yield
from version v
left join lateral (
  select e.symbol as canonical
  from unnest($1::text[]) with ordinality as c (symbol, ordinal) join symbols s using (symbol)
  join etfs e on e.symbol = s.canonical
  order by c.ordinal limit 1
) found on true
left join holdings t on t.etf_symbol = found.canonical and t.as_of = (
  select max(h.as_of) from holdings h where h.etf_symbol = found.canonical and ($2::date is null or h.as_of <= $2))
left join stocks s on s.symbol = t.symbol
order by t.rank
