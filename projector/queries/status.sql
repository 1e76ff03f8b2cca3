select f.name, f.checkpoint, f.holder, coalesce(f.lease_until > clock_timestamp(), false) as leased, f.halted,
       a.generation as active,
       (select count(*) from dead_letters d where d.fact_set = f.name and d.status = 'held') as dead_letters
from active a
join generations g on g.id = a.generation
join fact_sets f on f.name = g.fact_set
