select symbol, reference from dirty where generation = $1
