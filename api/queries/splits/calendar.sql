-- $1 first and $2 last ex-date; $3 canonical symbols, $4 sectors, $5 minimum yield, $6 types, $7 and $8 first and last
-- declaration date, each or null.
-- The rows of the date range are read first, and securities are looked up one by one. Without this order, a plan for
-- unknown values would read all securities first.
with due as materialized (
  select * from splits t where t.ex_date between $1 and $2 and t.status <> 'cancelled'
)
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated,
  t.*, s.name, s.exchange, s.sector, s.price, s.currency as price_currency, s.dividend_yield, s.market_cap,
  s.reporting_market_cap
from version v
left join (
  due t cross join lateral (select * from stocks s where s.symbol = t.symbol and s.is_active limit 1) s
) on
  ($3::text[] is null or t.symbol = any ($3))
  and ($4::text[] is null or s.sector = any ($4))
  and ($5::numeric is null or s.dividend_yield >= $5)
  and ($6::text[] is null or t.type = any ($6))
  and ($7::date is null or t.declaration_date >= $7) and ($8::date is null or t.declaration_date <= $8)
