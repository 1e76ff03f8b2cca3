select sequence, item from control.dead_letters where fact_set = $1 and status = 'discarded' order by 1, 2
