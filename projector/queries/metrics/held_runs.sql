-- Number of held runs of every source that has had one.
select r.manifest ->> 'source' as source, count(*) filter (where last.state = 'held') as runs
from run_states() last
join runs r on r.run = last.run and r.state = 'started'
group by 1
