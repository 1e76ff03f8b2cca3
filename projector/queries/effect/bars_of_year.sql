-- $1 year. Days of its bars.
select symbol, source, days, last_day from bars where year = $1 and last_day is not null
