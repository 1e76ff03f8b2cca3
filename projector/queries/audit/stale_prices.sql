select null as topic, symbol,
  case when price_date is null then 'no price at all'
    else format('last price of %s, %s sessions ago', price_date, price_age_sessions) end as seen,
  count(*) over () as total
from stocks
where is_active and (price_date is null or price_age_sessions > 5)
order by price_age_sessions, symbol
limit 10
