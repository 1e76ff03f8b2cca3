-- Frees the slot of a stream that ended. $1 account, $2 slot, $3 instance.
delete from accounts.stream_slots where account_id = $1::bigint and slot = $2::integer and instance = $3::bigint
