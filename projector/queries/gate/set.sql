-- $1 source, $2 kind, $3 expectation, $4 limit; null for none.
insert into expectations (source, kind, expectation, limit_value) values ($1, $2, $3, $4)
on conflict (source, kind, expectation) do update set limit_value = excluded.limit_value
