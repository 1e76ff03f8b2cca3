select g.projections, a.generation as active
from control.generations g
cross join control.active a
where g.id = $1
