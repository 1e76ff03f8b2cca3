-- $1 date one month ago; days without a dividend until a lapse: $2 longest limit, $3 limit of a yearly payer, $4 limit
-- of an irregular payer.
-- Superset of the securities whose status may have changed since $1, by ex-dates alone. The limits have some slack,
-- because the estimated frequency may have been lower a month ago.
select i.identity, m.dividend_status
from metrics m
join stocks s using (symbol)
join identities i using (symbol)
cross join lateral (
  select max(d.ex_date) as newest, max(d.ex_date) filter (where d.ex_date <= $1) as before,
    min(d.ex_date) filter (where d.ex_date > $1) as after
  from dividends d
  where d.symbol = m.symbol and d.ex_date > $1 - 250 - $2::integer and d.status in ('declared', 'paid')
) paid
where s.is_active and case m.dividend_status
    when 'suspended' then true
    when 'lapsed' then paid.newest > $1 - 72 - $2::integer
    when 'active' then paid.after is not null
      and (paid.before is null
        or paid.after - paid.before > least(0.73 * $3::integer / coalesce(m.payments_per_year, 2), $4::integer))
    else false
  end
order by m.symbol
