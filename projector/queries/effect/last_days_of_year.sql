-- $1 year. Newest session with a live bar of each symbol and source in this year.
select symbol, source, last_day from bars where year = $1 and last_day is not null
