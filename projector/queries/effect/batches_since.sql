-- $1 position. Messages of each feed after the position.
select kind, source, array_agg(distinct sequence order by sequence) as sequences
from frames
where sequence > $1 and kind not in ('reject', 'run')
group by kind, source
