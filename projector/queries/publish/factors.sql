-- $1 securities. Quotients are published with 28 decimal places.
select symbol, ex_date, split_from, split_to, dividend_factor::numeric(38, 28) as dividend_factor,
  dividend::numeric(38, 28) as dividend, value::numeric(38, 28) as value, price_only_from, price_only_to
from factors
where symbol = any ($1)
order by symbol, ex_date
