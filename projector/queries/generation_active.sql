select id, fact_set, benchmark, as_of, policy, rules, method_version, state
from generations join active on active.generation = generations.id
