-- $1 version of the program. Stores the inputs of the version's derivation, unless they are stored.
insert into version_inputs (fact_set, method_version, program_version, benchmark, reporting_currency, policy, rules, journal)
select g.fact_set, g.method_version, $1, g.benchmark, g.reporting_currency, v.policy::jsonb, g.rules::jsonb, j.id
from version v
join generations g on g.id = v.generation
cross join journal j
where not exists (
  select from version_inputs i
  where (i.fact_set, i.method_version, i.program_version, i.benchmark, i.reporting_currency, i.policy, i.rules, i.journal)
    = (g.fact_set, g.method_version, $1, g.benchmark, g.reporting_currency, v.policy::jsonb, g.rules::jsonb, j.id)
)
