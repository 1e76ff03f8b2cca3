update generations set rebuilt_to = $2 where id = $1
