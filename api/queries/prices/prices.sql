-- $1 spellings of the symbol, $2 first and $3 last calendar year. The newest year before $2 is included, because a
-- change needs the preceding close. Always one row; `canonical` is null for an unknown symbol.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated,
  found.canonical, t.exchange, t.currency, t.price_age_sessions, f.factors,
  (select c.at from changes c where c.kind = 'factors' and c.symbol = found.canonical and c.id = '') as factors_changed_at,
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
  from prices y
  where y.symbol = found.canonical and y.year <= $3
    and y.year >= coalesce((select max(e.year) from prices e where e.symbol = found.canonical and e.year < $2), $2)
) p on true
