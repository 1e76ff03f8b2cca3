-- $1 a month ago. Securities whose payer status may have changed since: more than have, told from ex-dates alone.
select i.identity, m.dividend_status
from metrics m
join stocks s using (symbol)
join identities i using (symbol)
cross join lateral (
  select max(d.ex_date) as newest, max(d.ex_date) filter (where d.ex_date <= $1) as before,
    min(d.ex_date) filter (where d.ex_date > $1) as after
  from dividends d
  where d.symbol = m.symbol and d.ex_date > $1 - 800 and d.status in ('declared', 'paid')
) paid
where s.is_active and case m.dividend_status
    when 'suspended' then true
    when 'lapsed' then paid.newest > $1 - 620
    when 'active' then paid.after is not null
      and (paid.before is null or paid.after - paid.before > 400 / coalesce(m.payments_per_year, 2))
    else false
  end
order by m.symbol
