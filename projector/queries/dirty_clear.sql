delete from dirty where generation = $1
