update version set sequence = $1, as_of = $2, policy = $3
