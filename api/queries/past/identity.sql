-- $1 spellings of the symbol. The identities of the security and of the benchmark, and what to derive with.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.policy, g.rules, g.fact_set, g.benchmark, own.identity, market.identity as benchmark_identity
from version v
join control.generations g on g.id = v.generation
left join lateral (
  select s.canonical
  from unnest($1::text[]) with ordinality as c (symbol, ordinal) join symbols s using (symbol)
  order by c.ordinal limit 1
) found on true
left join identities own on own.symbol = found.canonical
left join symbols bench on bench.symbol = g.benchmark
left join identities market on market.symbol = bench.canonical
