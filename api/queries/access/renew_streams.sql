-- Renews the leases of open streams. $1 instance, $2 accounts, $3 slots and $4 key hashes side by side, $5 length of the lease
-- in seconds. Returns the renewed slots, each with the tier of its key; null for an invalid key. Another instance may have
-- taken an expired slot.
update accounts.stream_slots s set expires_at = clock_timestamp() + $5::double precision * interval '1 second'
from unnest($2::bigint[], $3::integer[], $4::bytea[]) as r (account_id, slot, hash)
left join accounts.valid_keys k on k.hash = r.hash
where s.account_id = r.account_id and s.slot = r.slot and s.instance = $1::bigint
returning s.account_id, s.slot, k.tier
