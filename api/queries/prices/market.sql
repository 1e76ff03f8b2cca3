-- $1 first and $2 last calendar year, or null for the year of the market date; $3 canonical symbols or null for all; $4
-- first symbol or null; $5 maximum securities.
-- Securities with bars in these years, by symbol. Each has also its newest year before $1, because a change needs the
-- preceding close. Without such a security, `canonical` is null in the only row. The sub-select has a limit for each
-- security; otherwise Postgres would read the years of all securities.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated,
  t.symbol as canonical, t.exchange, t.currency, t.price_age_sessions, f.factors,
  p.days, p.close, p.range, p.volume, p.extra
from version v
cross join lateral (
  select coalesce($1::integer, extract(year from v.as_of)::integer) as first,
    coalesce($2::integer, extract(year from v.as_of)::integer) as last
) y
left join lateral (
  select s.symbol, s.exchange, s.currency, s.price_age_sessions from stocks s
  where ($3::text[] is null or s.symbol = any ($3)) and ($4::text is null or s.symbol >= $4)
    and (select true from prices e where e.symbol = s.symbol and e.year between y.first and y.last limit 1)
  order by s.symbol limit $5
) t on true
left join lateral (select a.factors from factors a where a.symbol = t.symbol limit 1) f on true
left join lateral (
  select array_agg(b.days order by b.year) as days, array_agg(b.close order by b.year) as close,
    array_agg(b.range order by b.year) as range, array_agg(b.volume order by b.year) as volume,
    array_agg(b.extra order by b.year) as extra
  from prices b
  where b.symbol = t.symbol and b.year <= y.last
    and b.year >= coalesce((select max(e.year) from prices e where e.symbol = t.symbol and e.year < y.first), y.first)
) p on true
order by t.symbol
