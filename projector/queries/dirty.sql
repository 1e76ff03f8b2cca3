select symbol, reference from dirty where fact_set = $1
