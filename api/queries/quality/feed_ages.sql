-- Newest day and last update of the served prices and dividends of each feed.
select source, 'prices' as kind, max(price_date) as newest, max(updated_at) as updated_at
from quotes where price_date is not null group by source
union all
select source, 'dividends', max(ex_date), max(updated_at) from dividends where status <> 'projected' group by source
order by source, kind limit 100
