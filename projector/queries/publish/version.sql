select v.generation, v.sequence, v.position, v.is_repeated, v.as_of, g.method_version, g.rules, j.id as journal
from version v
join generations g on g.id = v.generation
cross join journal j
