-- Active securities with their exchanges.
select symbol, coalesce(exchange, '') as exchange from stocks where is_active
