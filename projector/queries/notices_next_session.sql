-- $1 market date, $2 next session. Dividends with an ex-date after the market date, up to the next session, that have no
-- notice yet.
select d.* from dividends d
where d.ex_date > $1 and d.ex_date <= $2 and d.status in ('declared', 'paid') and d.id is not null
  and not exists (
    select from notices n
    where n.symbol = d.symbol and n.event = 'ex_date_soon' and n.record = d.id and n.date = d.ex_date
  )
order by d.symbol, d.id
