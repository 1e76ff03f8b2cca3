update control.dead_letters set status = 'discarded' where sequence = $1 and item = $2 and status = 'held'
