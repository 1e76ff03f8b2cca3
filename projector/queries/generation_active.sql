select id, fact_set, benchmark, reporting_currency, as_of, policy, rules, method_version, state
from generations join active on active.generation = generations.id
