select f.paused,
       exists (
         select from generations g
         join dirty d on d.generation = g.id
         where g.fact_set = f.name and g.state = 'tailing' and d.reference and '' = any (d.symbols)
       ) as dirty
from fact_sets f
where f.name = $1
