-- The transaction that derived last is the one that wrote the row.
select as_of, policy, xmin::text::bigint as writer from version
