select symbol, year, digest
from prices
where ($1::text[] is null or symbol = any ($1)) and ($2::integer is null or year >= $2)
order by symbol, year
