select id, fact_set, benchmark, as_of, policy, rules
from generations join active on active.generation = generations.id
