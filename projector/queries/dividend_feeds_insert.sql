-- $1 sources, $2 the calendar year of a dividend of each, $3 its sequence in the log.
insert into dividend_feeds (source, year, sequence)
select source, year, min(sequence) from unnest($1::text[], $2::integer[], $3::bigint[]) as brought (source, year, sequence)
group by source, year
on conflict do nothing
returning source
