-- Ends the lease. Its holder may acquire it again at once.
update fact_sets set epoch = epoch + 1, holder = null, lease_until = null where name = $1
