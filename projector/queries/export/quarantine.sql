select * from quarantine order by symbol, kind, date, source, line
