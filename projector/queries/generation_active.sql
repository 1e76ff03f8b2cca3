select id, fact_set, benchmark, as_of, policy
from generations join active on active.generation = generations.id
