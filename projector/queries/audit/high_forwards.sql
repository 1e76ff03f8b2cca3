select null as topic, m.symbol,
  format('forward %s against %s %s paid in 12 months, %s', m.dps_forward, m.dps_ttm, m.currency, m.frequency) as seen,
  count(*) over () as total
from metrics m join stocks s using (symbol)
where s.is_active and m.dps_ttm > 0 and m.dps_forward > 2 * m.dps_ttm
order by m.dps_forward / m.dps_ttm desc, m.symbol
limit 10
