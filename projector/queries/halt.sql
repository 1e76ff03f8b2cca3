update fact_sets set halted = $2 where name = $1
