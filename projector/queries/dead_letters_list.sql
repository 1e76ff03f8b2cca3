select fact_set, sequence, item, code, reason, subject, frame, source, file, line, status, payload
from dead_letters
where case when $1::bigint is null then status = 'held' else sequence = $1 end
order by fact_set, sequence, item
