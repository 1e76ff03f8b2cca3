-- $1 fact set. The month is the one before the served market date, if its quality was not measured yet.
select f.paused,
       exists (
         select from generations g
         join dirty d on d.generation = g.id
         where g.fact_set = f.name and g.state = 'tailing' and d.reference and '' = any (d.symbols)
       ) as dirty,
       (
         select (date_trunc('month', v.as_of) - interval '1 month')::date
         from active a
         join generations g on g.id = a.generation and g.fact_set = f.name
         cross join lateral (
           select as_of from versions where generation = g.id order by sequence desc, position desc limit 1
         ) v
         where not exists (
           select from quality_months m where m.month = (date_trunc('month', v.as_of) - interval '1 month')::date
         )
       ) as month
from fact_sets f
where f.name = $1
