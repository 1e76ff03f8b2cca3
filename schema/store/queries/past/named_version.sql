-- $1 generation, $2 sequence, $3 position or null. The version that was served under this name. A version without its
-- own entry has the data of the preceding entry.
select p.generation as version_generation, $2::bigint as version_sequence, p.as_of as version_as_of,
  p.position as version_position, p.is_repeated and p.sequence = $2 as version_is_repeated, p.sequence, p.at,
  i.fact_set, i.method_version, i.program_version, i.benchmark, i.reporting_currency, i.policy::json as policy, i.rules::json as rules,
  exists (select from control.fact_sets f where f.name = i.fact_set) as has_facts, i.journal,
  v.generation = p.generation and v.sequence = $2 and v.position = p.position as is_current
from version v
cross join lateral (
  select * from versions
  where generation = $1 and sequence <= $2
    and case when $3::bigint is null then sequence < $2 or not is_repeated else position = $3 end
  order by sequence desc, position desc limit 1
) p
join version_inputs i on i.id = p.inputs
left join lateral (
  select n.generation, n.sequence from versions n where n.position > p.position order by n.position limit 1
) later on true
where $2 <= case
  when later.generation is null then v.sequence
  when later.generation = p.generation then later.sequence
  else $2
end
