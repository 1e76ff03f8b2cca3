-- An event that is delivered twice has no further effect.
insert into run_changes (run, sequence, state, reason, at, operator) values ($1, $2, $3, $4, $5, $6)
on conflict (run, sequence) do nothing
