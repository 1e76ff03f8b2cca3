-- The served generation, and what says whether it follows the live policy.
select g.id, g.policy is not null as has_own, g.state, g.method_version
from generations g
join active a on a.generation = g.id
