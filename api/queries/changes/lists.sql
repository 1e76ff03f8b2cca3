-- $1 canonical symbols or null for all; $2 position, $3 true if served, and $4 symbol of the change before the page; $5
-- maximum changes. The columns of the security are null if it was removed.
select c.position, c.symbol as change_symbol,
  t.symbol, t.name, t.exchange, t.type, t.sector, t.industry, t.country, t.currency, t.is_active, t.delisted_on,
  t.price, t.price_date, t.market_cap, t.reporting_market_cap, t.pays_dividend, t.dividend_yield, t.yield_basis, t.annual_dividend,
  t.dividend_currency, t.frequency, t.next_ex_date, t.increase_streak_years, t.held_rows, t.updated_at, t.yield_ttm,
  t.yield_forward, t.payout_ratio, t.growth_1y, t.growth_3y, t.growth_5y, t.growth_10y, t.payment_streak_years,
  t.pe_ratio, t.beta, t.volume, t.is_dividend_aristocrat, t.is_dividend_king, t.price_age_sessions, t.yield_suspect,
  t.change_percent, t.change_percent_ytd, t.indexes
from (
  select * from changes
  where kind = 'lists' and (position, live, symbol) > ($2::bigint, $3::boolean, $4::text)
    and ($1::text[] is null or symbol = any ($1))
  order by position, live, symbol
  limit $5
) c
-- Looked up one by one, because a page has few securities.
left join lateral (select * from stocks o where o.symbol = c.symbol limit 1) t on true
order by c.position, c.live, c.symbol
