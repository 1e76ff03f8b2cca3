-- $1 generation. Locks the pointer to the served generation until the end of the transaction. Positions are then in
-- commit order.
select generation from active where generation = $1 for update
