-- $1 canonical symbol, $2 position, $3 time of the version. Last change of the adjustment factors up to the version.
select at from factor_changes
where symbol = $1 and position <= $2 and at > $3::timestamptz - interval '400 days'
order by position desc
limit 1
