-- $1 sequences at which facts of a security changed, $2 fact set, $3 maximum rows. Versions that may revise the
-- security, newest first, each with the inputs of the preceding version.
with ordered as (
  select v.*, lag(v.inputs) over w as inputs_before, lag(v.sequence) over w as sequence_before
  from versions v
  window w as (order by v.position)
)
select o.generation as version_generation, o.sequence as version_sequence, o.as_of as version_as_of,
  o.position as version_position, o.is_repeated as version_is_repeated, o.at, o.sequence_before,
  i.method_version, i.policy::json as policy, i.rules::json as rules,
  b.method_version as method_version_before, b.policy::json as policy_before, b.rules::json as rules_before
from ordered o
join version_inputs i on i.id = o.inputs
join version_inputs b on b.id = o.inputs_before
where o.as_of is not null and i.fact_set = $2 and b.fact_set = $2
  and (
    o.inputs <> o.inputs_before
    or exists (select from unnest($1::bigint[]) as changed (sequence) where sequence > o.sequence_before and sequence <= o.sequence)
  )
order by o.position desc
limit $3
