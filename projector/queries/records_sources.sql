select symbol, source from records where kind = $1
