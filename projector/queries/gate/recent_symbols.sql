-- $1 source, $2 day number. Symbols with a close of this source on that day or later.
select distinct symbol from bars where source = $1 and last_day >= $2 order by symbol
