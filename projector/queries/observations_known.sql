select s.symbol, s.kind from unnest($1::text[], $2::text[]) as s (symbol, kind)
where exists (select from observations o where (o.symbol, o.kind) = (s.symbol, s.kind))
