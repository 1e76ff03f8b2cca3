-- Securities with prices, dividends or reports in different currencies. Their figures may use exchange rates.
select m.symbol from metrics m
where m.currency <> m.price_currency
   or exists (select from dividends d where d.symbol = m.symbol and d.currency <> m.price_currency)
   or exists (select from fundamentals f where f.symbol = m.symbol and f.reported_currency <> m.price_currency)
