insert into runs (run, state, sequence, manifest) values ($1, $2, $3, $4)
on conflict (run, state) do nothing
