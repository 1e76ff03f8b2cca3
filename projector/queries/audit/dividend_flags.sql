-- $1 flag. Securities with the flag and their known dividends, largest market capitalization first.
select null as topic, m.symbol,
  case m.payment_count when 0 then 'no dividend known' else m.payment_count || ' dividends since ' || m.first_payment_date end
    as seen,
  count(*) over () as total
from metrics m join stocks s using (symbol)
where s.is_active and m.flags::jsonb ? $1
order by s.reporting_market_cap desc nulls last, m.symbol
limit 10
