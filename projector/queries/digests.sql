select symbol, tables from digests where symbol = any ($1)
