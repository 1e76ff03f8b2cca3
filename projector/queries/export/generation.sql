select g.state, g.rules, g.note, v.sequence, v.as_of, v.method_version, (select count(*) from prices) as years
from generations g
join version v on v.generation = g.id
