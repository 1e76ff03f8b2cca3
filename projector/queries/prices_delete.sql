delete from prices where symbol = any ($1)
