-- $1 flag. Securities with the flag, newest split first.
select null as topic, m.symbol,
  coalesce('newest split ' || split.text || ' on ' || split.ex_date, 'no split known') as seen,
  count(*) over () as total
from metrics m join stocks s using (symbol)
left join lateral (
  select text, ex_date from splits p where p.symbol = m.symbol and p.status = 'effective' order by ex_date desc limit 1
) split on true
where s.is_active and m.flags::jsonb ? $1
order by split.ex_date desc nulls last, m.symbol
limit 10
