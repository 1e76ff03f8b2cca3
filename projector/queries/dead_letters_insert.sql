insert into dead_letters (fact_set, sequence, item, code, reason, subject, frame, source, file, line, payload)
select fact_set, sequence, item, code, reason, subject, frame, source, file, line, payload
from staged_dead_letters
on conflict (fact_set, sequence, item) do nothing
