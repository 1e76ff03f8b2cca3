-- $1 canonical symbols, $2 first and $3 last payment date. Cash payments only. The bound of the ex-date limits the rows
-- that are read, because every payment is within 400 days of its ex-date.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, t.*
from version v
left join dividends t on t.symbol = any ($1) and t.ex_date > $2::date - 400
  and (t.payment_date between $2 and $3 or (t.payment_date is null and t.ex_date between $2 and $3))
  and t.status in ('declared', 'paid', 'projected') and t.type not in ('stock', 'spin_off')
order by t.payment_date, t.symbol, t.type, coalesce(t.id, '')
