-- Statistics of every sector.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, t.*
from version v left join sectors t on true
