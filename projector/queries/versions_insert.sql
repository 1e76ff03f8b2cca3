-- $1 version of the program. Stores the version that is served after this transaction.
insert into versions (position, generation, sequence, is_repeated, as_of, inputs)
select v.position, v.generation, v.sequence, v.is_repeated, v.as_of, i.id
from version v
join generations g on g.id = v.generation
cross join journal j
join version_inputs i
  on (i.fact_set, i.method_version, i.program_version, i.benchmark, i.reporting_currency, i.policy, i.rules, i.journal)
    = (g.fact_set, g.method_version, $1, g.benchmark, g.reporting_currency, v.policy::jsonb, g.rules::jsonb, j.id)
