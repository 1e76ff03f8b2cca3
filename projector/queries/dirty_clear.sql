delete from dirty where fact_set = $1
