-- $1 first year. Packed days of each active security's bars.
select p.symbol, coalesce(s.exchange, '') as exchange, p.days
from prices p join stocks s using (symbol)
where s.is_active and p.year >= $1
order by p.symbol, p.year
