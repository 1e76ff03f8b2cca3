-- $3 true if the holder ends. Otherwise, the holder continues and may acquire the lease again.
update fact_sets set lease_until = null, holder = case when $3 then null else holder end
where name = $1 and epoch = $2
