select epoch from fact_sets where name = $1 for update
