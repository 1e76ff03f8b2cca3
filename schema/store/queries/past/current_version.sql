-- The served version. During a derivation, the facts may be newer. Responses from facts are therefore limited to the
-- sequence of this version.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, v.sequence, now() as at,
  g.fact_set, g.method_version, '' as program_version, g.benchmark, g.reporting_currency, v.policy, g.rules, true as has_facts, j.id as journal,
  true as is_current
from version v
join generations g on g.id = v.generation
cross join journal j
