-- Locks the invitations of address $1 until the transaction ends. Otherwise, two concurrent invitations would not end
-- each other.
select pg_advisory_xact_lock(7402, hashtext($1))
