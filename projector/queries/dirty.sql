select symbols, reference from dirty where generation = $1
