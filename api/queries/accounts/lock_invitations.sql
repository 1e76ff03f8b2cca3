-- Locks the invitations of address $1 until the transaction ends: two at once would not see, and not end, each other.
select pg_advisory_xact_lock(7402, hashtext($1))
