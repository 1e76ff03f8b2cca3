-- $1 first and $2 last day; $3 canonical symbols, $4 sectors, $5 minimum yield, $6 currencies with $19 their minimum amounts, $7 types, $8
-- frequencies, each or null; $9 true to include projected rows; $10 to $13 the row before the page or null; $14 maximum
-- rows; $15 to $18 first and last declaration and record date, each or null.
-- The rows of the date range are read first, and securities are looked up one by one. Without this order, a plan for
-- unknown values would read all securities first.
with due as materialized (
  select * from dividends t
  where t.payment_date between $1 and $2 and ($10::date is null or t.payment_date <= $10)
    and (t.status in ('declared', 'paid') or ($9 and t.status = 'projected'))
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
  and ($6::text[] is null or (t.type not in ('stock', 'spin_off') and t.amount >= (
    select m.least from unnest($6, $19::numeric[]) m (currency, least) where m.currency = t.currency
  )))
  and ($7::text[] is null or t.type = any ($7))
  and ($8::text[] is null or t.frequency = any ($8))
  and ($15::date is null or t.declaration_date >= $15) and ($16::date is null or t.declaration_date <= $16)
  and ($17::date is null or t.record_date >= $17) and ($18::date is null or t.record_date <= $18)
  and ($10::date is null or (t.payment_date < $10 or (t.payment_date = $10
      and (t.symbol, t.type, coalesce(t.id, '')) > ($11::text, $12::text, $13::text))))
order by t.payment_date desc, t.symbol, t.type, coalesce(t.id, '')
limit $14
