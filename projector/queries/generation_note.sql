update generations set note = $2 where id = $1
