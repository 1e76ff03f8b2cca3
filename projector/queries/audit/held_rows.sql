-- Ten quarantined rows of each reason, newest first, without the confirmed ones.
select topic, symbol, seen, total
from (
  select kind || ' ' || reason as topic, symbol,
    concat_ws(' ', date, message, '(' || source || ', line ' || line || ')') as seen,
    count(*) over (partition by kind, reason) as total,
    row_number() over (partition by kind, reason order by date desc nulls last, symbol, line) as ordinal
  from quarantine
  where reason <> 'confirmed'
) ranked
where ordinal <= 10
order by total desc, topic, ordinal
