update generations g
set state = case when f.until_sequence is null then 'tailing' else 'frozen' end
from fact_sets f
where g.id = $1 and f.name = g.fact_set
