select symbol, year, digest from prices where symbol = any ($1)
