-- $1 indexes of look-ups and $2 spellings of their symbols, in order of preference. One row per look-up; its columns
-- are null for an unknown symbol.
-- A security without fundamentals has a row with the values of its list row, and nulls.
select asked.ordinal, v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, s.symbol,
  coalesce(t.name, s.name) as name,
  coalesce(t.sector, s.sector) as sector,
  coalesce(t.industry, s.industry) as industry,
  coalesce(t.country, s.country) as country,
  coalesce(t.market_cap, s.market_cap) as market_cap,
  coalesce(t.pe_ratio, s.pe_ratio) as pe_ratio,
  coalesce(t.payout_ratio, s.payout_ratio) as payout_ratio,
  coalesce(t.beta, s.beta) as beta,
  coalesce(t.updated_at, s.updated_at) as updated_at,
  t.website, t.employees, t.ipo_date, t.enterprise_value, t.shares_outstanding, t.float_shares, t.forward_pe,
  t.peg_ratio, t.pb_ratio, t.ps_ratio, t.ev_to_ebitda, t.eps_ttm, t.book_value_per_share, t.fcf_per_share,
  t.revenue_ttm, t.net_income_ttm, t.free_cash_flow_ttm, t.gross_margin, t.operating_margin, t.net_margin, t.roe,
  t.roa, t.fcf_payout_ratio, t.debt_to_equity, t.current_ratio, t.interest_coverage, t.fiscal_period_end,
  t.reported_currency, t.as_of
from version v
cross join (
  select distinct on (c.ordinal) c.ordinal, n.canonical
  from unnest($1::integer[], $2::text[]) with ordinality as c (ordinal, symbol, preference)
  left join symbols n using (symbol)
  order by c.ordinal, n.canonical is null, c.preference
) asked
left join stocks s on s.symbol = asked.canonical
left join fundamentals t on t.symbol = asked.canonical
