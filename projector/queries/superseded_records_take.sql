-- $1 symbols, $2 kinds and $3 sources of rows. Deletes the observations that do not count, and returns them.
delete from superseded_records s
using unnest($1::text[], $2::text[], $3::text[]) as k (symbol, kind, source)
where s.symbol = k.symbol and s.kind = k.kind and s.source = k.source
returning s.symbol, s.kind, s.source, s.packed
