-- Charges an attempt to its subjects $1: seconds $2 a piece, bursts $3, longest delays $4 in seconds.
select c.refused_by, c.seconds from accounts.charge_attempt($1, $2, $3, $4) c
