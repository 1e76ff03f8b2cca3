-- $1 symbols, $2 first ex-date of the deleted rows.
delete from {table} where symbol = any ($1) and ex_date >= $2
