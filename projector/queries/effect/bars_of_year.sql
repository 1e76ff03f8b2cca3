-- $1 year. Days of the bars of this year.
select symbol, source, days, last_day from bars where year = $1 and last_day is not null
