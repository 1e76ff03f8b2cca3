update control.generations set as_of = $2, policy = $3, projections = $4 where id = $1
