-- Counts of securities by available data. A price is stale if it is more than five sessions old.
select count(*) filter (where s.is_active) as active,
  count(*) filter (where not s.is_active) as delisted,
  count(*) filter (where s.is_active and s.price is not null) as priced,
  count(*) filter (where s.is_active and s.price_age_sessions > 5) as stale,
  count(*) filter (where s.is_active and s.pays_dividend) as payers,
  count(*) filter (where s.is_active and s.pays_dividend is null) as unknown_dividends,
  count(*) filter (where s.is_active and s.dividend_yield is not null) as yielding
from stocks s
