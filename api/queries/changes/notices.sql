-- $1 canonical symbols or null for all; $2 position, $3 true if served, $4 symbol and $5 id of the notice before the page;
-- $6 maximum notices.
select * from notices
where position >= $2::bigint and (position, true, symbol, id) > ($2, $3::boolean, $4::text, $5::text)
  and ($1::text[] is null or symbol = any ($1))
order by position, symbol, id
limit $6
