-- The row was written by the transaction of the last derivation.
select as_of, policy, xmin::text::bigint as writer from version
