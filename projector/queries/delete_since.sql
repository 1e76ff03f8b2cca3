-- $1 symbols, $2 the first ex-date of the rows that go.
delete from {table} where symbol = any ($1) and ex_date >= $2
