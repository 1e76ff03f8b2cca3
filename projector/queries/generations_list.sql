select g.id, g.state, g.method_version, g.fact_set, g.rules, g.note, f.checkpoint, a.generation = g.id as served,
       a.previous is not distinct from g.id as previous
from generations g
join fact_sets f on f.name = g.fact_set
cross join active a
order by g.id
