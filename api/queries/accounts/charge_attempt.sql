-- Charges an attempt to its subjects $1. For each subject: $2 seconds per attempt, $3 burst, $4 longest delay in
-- seconds.
select c.refused_by, c.seconds from accounts.charge_attempt($1, $2, $3, $4) c
