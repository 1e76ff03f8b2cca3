-- $1 securities.
select * from quarantine where symbol = any ($1) order by symbol, kind, date, source, line, id
