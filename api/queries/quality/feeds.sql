-- Dividend records by feed, with the newest ex-date that is not estimated.
select d.source, count(*) as rows, count(distinct d.symbol) as securities, max(d.ex_date) as newest,
  max(d.updated_at) as updated_at
from dividends d where d.status <> 'projected' group by d.source order by count(*) desc, d.source limit 100
