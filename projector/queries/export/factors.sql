-- A dividend factor is a quotient. It is exported with 28 decimal places.
select symbol, ex_date, split_from, split_to, dividend_factor::numeric(38, 28) as dividend_factor, dividend, value,
  price_only_from, price_only_to
from factors
order by symbol, ex_date
