-- The buckets of keys with a rate of their own, which whoever holds their accounts' locks may charge. $1 keys.
select k.id, k.tokens, k.at from accounts.api_keys k where k.id = any($1::bigint[])
