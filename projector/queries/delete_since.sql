-- $1 symbols, $2 the first ex-date of each one's rows that go; null: all of them.
delete from {table} t
using unnest($1::text[], $2::date[]) as stale (symbol, since)
where t.symbol = stale.symbol and t.ex_date >= coalesce(stale.since, '-infinity')
