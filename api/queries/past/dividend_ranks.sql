-- $1 types and $2 ids of dividends: the rank of each in the order in which the read tables sort them.
select rank() over (order by t.type, t.id) as rank
from unnest($1::text[], $2::text[]) with ordinality as t (type, id, ordinal)
order by t.ordinal
