select symbol, canonical from symbols where symbol = any ($1) or canonical = any ($2)
