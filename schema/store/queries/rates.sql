select symbol, source, packed from records where kind = 'fx'
