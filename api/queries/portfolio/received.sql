-- $1 canonical symbols with $2 the day of the first transaction of each; $3 first and $4 last day; $5 rows at most. Cash
-- payments and spin-offs by payment date, or by ex-date without a payment date. The bound of the ex-date limits the rows
-- that are read, because every payment is within 400 days of its ex-date.
select t.*
from unnest($1::text[], $2::date[]) as held (symbol, since)
join dividends t on t.symbol = held.symbol and t.ex_date > greatest(held.since, $3::date - 400)
where coalesce(t.payment_date, t.ex_date) between $3 and $4
  and t.status in ('declared', 'paid', 'projected') and t.type <> 'stock'
order by t.symbol, t.ex_date, t.type collate "C", coalesce(t.id, '') collate "C"
limit $5
