-- $1 spellings of the symbol. Its newest two years with bars, for the latest bar and the preceding close. Always one
-- row; `canonical` is null for an unknown symbol.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated,
  found.canonical, t.exchange, t.currency, t.price_age_sessions, f.factors,
  p.days, p.close, p.range, p.volume, p.extra
from version v
left join lateral (
  select s.canonical
  from unnest($1::text[]) with ordinality as c (symbol, ordinal) join symbols s using (symbol)
  order by c.ordinal limit 1
) found on true
left join stocks t on t.symbol = found.canonical
left join factors f on f.symbol = found.canonical
left join lateral (
  select array_agg(y.days order by y.year) as days, array_agg(y.close order by y.year) as close,
    array_agg(y.range order by y.year) as range, array_agg(y.volume order by y.year) as volume,
    array_agg(y.extra order by y.year) as extra
  from (select * from prices e where e.symbol = found.canonical order by e.year desc limit 2) y
) p on true
