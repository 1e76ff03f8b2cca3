-- $1 position. Answers of a generation that was served before may have had the name of its sequence.
update version
set position = $1, is_repeated = exists (select from versions v where v.generation = version.generation)
