-- $1 year, $2 securities.
select symbol, days, close, range, volume, extra, bytea '' as versions from prices where year = $1 and symbol = any ($2) order by symbol
