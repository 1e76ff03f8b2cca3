select symbol, kind, date, id, reason, message, source, line
from quarantine
where ($1::text is null or symbol = $1) and ($2::text is null or reason = $2)
order by symbol, kind, date, source, id, line
