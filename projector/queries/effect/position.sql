-- $1 run, $2 fact set. Position of the run in the log, and last message of the served tables. A long derivation
-- outlasts the stored end of its lease. Therefore, only the holder shows that a projector follows the log.
select v.sequence as served, f.checkpoint, f.holder is not null as followed, begun.sequence as first,
  coalesce((select s.state from run_states() s where s.run = $1), 'visible') = 'visible' as is_visible,
  begun.manifest ->> 'source' as source, done.sequence as last
from version v
join fact_sets f on f.name = $2
left join runs begun on begun.run = $1 and begun.state = 'started'
left join runs done on done.run = $1 and done.state = 'completed'
