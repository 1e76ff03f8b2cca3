-- $1 canonical symbols. Splits that took place or are announced.
select t.* from splits t where t.symbol = any ($1) and t.status <> 'cancelled' order by t.symbol, t.ex_date
