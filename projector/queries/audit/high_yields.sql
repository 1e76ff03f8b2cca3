select null as topic, m.symbol,
  format('%s %% on a price of %s %s on %s, %s payments in 12 months', m.dividend_yield, m.price, m.price_currency,
    m.price_date, m.ttm_payment_count) as seen,
  count(*) over () as total
from metrics m join stocks s using (symbol)
where s.is_active and s.yield_suspect
order by m.dividend_yield desc, m.symbol
limit 10
