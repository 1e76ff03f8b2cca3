-- $1 reporting currency. Securities with prices, dividends or reports in different currencies, or with prices in another
-- currency than the reporting currency. Their figures may use exchange rates.
select m.symbol from metrics m
where m.price_currency <> $1
   or m.currency <> m.price_currency
   or exists (select from dividends d where d.symbol = m.symbol and d.currency <> m.price_currency)
   or exists (select from fundamentals f where f.symbol = m.symbol and f.reported_currency <> m.price_currency)
