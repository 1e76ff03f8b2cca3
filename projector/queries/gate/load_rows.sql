-- $1 run. Number of its rows by kind; evidence and rejects are counted apart.
select kind, sum(rows)::bigint as rows
from frames
where kind not in ('run', 'evidence', 'reject')
  and (run = $1 or frame in (select frame from batch_runs where run = $1))
group by kind
