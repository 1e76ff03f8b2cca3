-- Newest day and last update of the served prices and dividends of each feed.
select b.source, 'price' as kind, max(b.day) as newest, max(q.updated_at) as updated_at
from version v
cross join lateral newest_bars(v.generation, extract(year from v.as_of)::integer - 1) b
join quotes q on q.symbol = b.symbol
group by b.source
union all
select source, 'dividend', max(ex_date), max(updated_at) from dividends where status <> 'projected' group by source
order by source, kind limit 100
