update version set sequence = $1, as_of = $2, policy = $3 returning xmin::text::bigint as writer
