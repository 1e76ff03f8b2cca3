-- Served version, with its rule version, rule parameters and promotion note, and the state of the control
-- tables that responses show.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, v.method_version, g.rules, g.note,
  (select count(*) from source_licences) + (select count(*) from quality_months) as control_revision,
  exists (select from licences where not redistribution) as restricts
from version v
join control.generations g on g.id = v.generation
