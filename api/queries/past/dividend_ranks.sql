-- $1 types and $2 ids of dividends. Rank of each dividend in the sort order of the read tables.
select rank() over (order by t.type, t.id) as rank
from unnest($1::text[], $2::text[]) with ordinality as t (type, id, ordinal)
order by t.ordinal
