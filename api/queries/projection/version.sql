-- Served version, with its rule version, rule parameters and promotion note.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, v.method_version, g.rules, g.note
from version v
join control.generations g on g.id = v.generation
