select v.sequence, v.as_of, pg_database_size(current_database()) as database_bytes from version v
