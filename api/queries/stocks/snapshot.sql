-- $1 indexes of look-ups and $2 spellings of their symbols, in order of preference. One row per look-up; its columns
-- are null for an unknown symbol. The listings are those with the ISIN of the security. If there are several, each has a
-- key in `symbols` that consists of the ISIN, a space and its symbol.
select asked.ordinal, v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, t.*, o.listings
from version v
cross join (
  select distinct on (c.ordinal) c.ordinal, n.canonical
  from unnest($1::integer[], $2::text[]) with ordinality as c (ordinal, symbol, preference)
  left join symbols n using (symbol)
  order by c.ordinal, n.canonical is null, c.preference
) asked
left join stocks t on t.symbol = asked.canonical
cross join lateral (
  select coalesce(
    json_agg(json_build_object('symbol', l.symbol, 'exchange', l.exchange, 'currency', l.currency) order by l.symbol),
    json_build_array(json_build_object('symbol', t.symbol, 'exchange', t.exchange, 'currency', t.currency))
  ) as listings
  from (
    select s.canonical from symbols s
    where s.symbol > 'isin:' || upper(trim(t.identifiers ->> 'isin')) || ' '
      and s.symbol < 'isin:' || upper(trim(t.identifiers ->> 'isin')) || '!'
    limit 50
  ) n
  cross join lateral (select * from stocks other where other.symbol = n.canonical limit 1) l
) o
