update version set sequence = $1, as_of = $2, policy = $3, position = $4 returning xmin::text::bigint as writer
