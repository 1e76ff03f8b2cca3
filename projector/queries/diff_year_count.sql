-- $1 securities or null, $2 first year or null. Number of price years, and the sum of their digests.
select count(*) as years, coalesce(sum(digest), 0)::text as checksum
from prices
where ($1::text[] is null or symbol = any ($1)) and ($2::integer is null or year >= $2)
