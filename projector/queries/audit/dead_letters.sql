-- Ten messages or rows of each code, newest first.
select topic, symbol, seen, total
from (
  select code as topic, sequence || '/' || item as symbol, concat_ws(' ', source, file, 'line ' || line, reason) as seen,
    count(*) over (partition by code) as total, row_number() over (partition by code order by sequence desc, item) as ordinal
  from dead_letters
  where status = 'held'
) ranked
where ordinal <= 10
order by total desc, topic, ordinal
