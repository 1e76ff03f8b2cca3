-- $1 sources and $2 calendar years without visible dividends since the log sequence $3. Returns the sources of years that
-- had some.
update dividend_feeds f set ended = $3
from unnest($1::text[], $2::integer[]) as gone (source, year)
where f.source = gone.source and f.year = gone.year and f.ended is null
returning f.source
