select coalesce(g.policy, g.held_policy) as policy
from generations g
join active a on a.generation = g.id
