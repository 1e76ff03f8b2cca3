-- $1 sources, $2 the calendar year of a dividend of each.
insert into dividend_feeds (source, year)
select distinct source, year from unnest($1::text[], $2::integer[]) as brought (source, year)
on conflict do nothing
returning source
