-- Renews the leases of open streams. $1 instance, $2 accounts and $3 slots side by side, $4 length of the lease in seconds.
-- Returns the renewed slots. Another instance may have taken an expired one.
update accounts.stream_slots s set expires_at = clock_timestamp() + $4::double precision * interval '1 second'
from unnest($2::bigint[], $3::integer[]) as r (account_id, slot)
where s.account_id = r.account_id and s.slot = r.slot and s.instance = $1::bigint
returning s.account_id, s.slot
