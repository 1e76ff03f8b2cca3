insert into reviews (generation, against, sequence, against_sequence) values ($1, $2, $3, $4)
on conflict (generation, against) do update
set sequence = excluded.sequence, against_sequence = excluded.against_sequence, reviewed_at = now()
