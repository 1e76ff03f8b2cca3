select checkpoint, epoch, until_sequence from fact_sets where name = $1 for update
