-- $1 symbols. Dividend statuses of listed securities, with the ex-date of the newest regular dividend.
select m.symbol, m.dividend_status, (
  select max(d.ex_date) from dividends d
  where d.symbol = m.symbol and d.reading is not null and d.status in ('declared', 'paid')
) as newest
from metrics m
join stocks s using (symbol)
where m.symbol = any ($1) and s.is_active
