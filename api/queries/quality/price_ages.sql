-- Newest day and last update of the served prices of each source.
select b.source, max(b.day) as newest, max(q.updated_at) as updated_at
from version v
cross join lateral newest_bars(v.generation, extract(year from v.as_of)::integer - 1) b
join quotes q on q.symbol = b.symbol
group by b.source
order by b.source limit 100
