select null as topic, m.symbol, format('pays in %s, trades in %s', m.currency, m.price_currency) as seen,
  count(*) over () as total
from metrics m join stocks s using (symbol)
where s.is_active and m.dividend_status <> 'non_payer' and m.currency <> m.price_currency
order by s.reporting_market_cap desc nulls last, m.symbol
limit 10
