update fact_sets set paused = $1
where name = (select g.fact_set from active a join generations g on g.id = a.generation)
