-- $1 sources, $2 calendar years and $3 log sequences of dividends. Returns the sources of new years.
insert into dividend_feeds (source, year, sequence)
select source, year, min(sequence) from unnest($1::text[], $2::integer[], $3::bigint[]) as brought (source, year, sequence)
where not exists (
  select from dividend_feeds f where f.source = brought.source and f.year = brought.year and f.ended is null
)
group by source, year
on conflict (source, year, sequence) do update set ended = null
returning source
