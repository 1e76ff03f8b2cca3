-- Every security, without the nested parts of the snapshot.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated,
  t.symbol, t.name, t.exchange, t.type, t.sector, t.industry, t.country, t.currency, t.is_active, t.delisted_on,
  t.price, t.price_date, t.market_cap, t.reporting_market_cap, t.pays_dividend, t.dividend_yield, t.yield_basis, t.annual_dividend,
  t.dividend_currency, t.frequency, t.next_ex_date, t.increase_streak_years, t.held_rows, t.updated_at, t.yield_ttm,
  t.yield_forward, t.payout_ratio, t.growth_1y, t.growth_3y, t.growth_5y, t.growth_10y, t.payment_streak_years,
  t.pe_ratio, t.beta, t.volume, t.is_dividend_aristocrat, t.is_dividend_king, t.price_age_sessions, t.yield_suspect,
  t.change_percent, t.change_percent_ytd, t.indexes
from version v
left join stocks t on true
order by t.symbol
