-- $1 instant. The version that was served at this instant.
select p.generation as version_generation, s.sequence as version_sequence, p.as_of as version_as_of,
  p.position as version_position, p.is_repeated and p.sequence = s.sequence as version_is_repeated, p.sequence, p.at,
  i.fact_set, i.method_version, i.program_version, i.benchmark, i.reporting_currency, i.policy::json as policy, i.rules::json as rules,
  exists (select from control.fact_sets f where f.name = i.fact_set) as has_facts, i.journal,
  s.is_current
from version v
cross join lateral (select * from versions where at <= $1 order by at desc, position desc limit 1) p
cross join lateral (
  select v.generation = p.generation and v.position = p.position as is_current
) c
cross join lateral (
  select c.is_current, case when c.is_current then v.sequence else p.sequence end as sequence
) s
join version_inputs i on i.id = p.inputs
