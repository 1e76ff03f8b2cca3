-- $1 position. If the generation was served before, its sequence may already name other data. The name of the version
-- then includes the position.
update version
set position = $1, is_repeated = exists (select from versions v where v.generation = version.generation)
