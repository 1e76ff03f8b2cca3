-- Writes what is left of keys with a rate of their own, whose accounts are locked. $1 keys, $2 tokens, $3 times.
update accounts.api_keys k
set tokens = r.tokens, at = r.at
from unnest($1::bigint[], $2::double precision[], $3::timestamptz[]) as r (id, tokens, at)
where k.id = r.id
