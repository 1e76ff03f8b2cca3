-- $1 canonical symbols, $2 events, $3 causes, $4 true with backfilled events. The newest 200 notices of 90 days. A notice
-- before a rename has the former symbol.
select * from notices
where symbol = any (array(select s.symbol from symbols s where s.canonical = any ($1) union select unnest($1)))
  and event = any ($2) and cause = any ($3) and ($4::boolean or not is_backfill)
  and at > now() - interval '90 days'
order by position desc, symbol, id
limit 200
