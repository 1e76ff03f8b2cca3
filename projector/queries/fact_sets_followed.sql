select distinct fact_set from generations where state = 'tailing' and method_version = $1
union
select g.fact_set from active a join generations g on g.id = a.generation
