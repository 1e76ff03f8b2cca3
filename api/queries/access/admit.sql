-- Decides the calls of a batch and charges them. $1 key hashes, $2 calls, $3 ranks of the tiers from which on the calls
-- count against the quota; null for calls that do not count.
select * from accounts.admit($1, $2, $3)
