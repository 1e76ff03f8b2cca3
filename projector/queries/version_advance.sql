-- $1 sequence, $2 market date, $3 policy, $4 position, $5 true if securities were derived or exchange rates changed. A
-- derivation without changes keeps the position. If a sequence has new data, the name of the version includes the
-- position. After a restore, versions of the backup's sequences already exist. The first version is new even if nothing is
-- derived: it is served too.
update version
set sequence = $1, as_of = $2, policy = $3,
  position = case when $5 or as_of is distinct from $2 then $4 else position end,
  is_repeated = case when $5 or as_of is distinct from $2 then sequence = $1 else is_repeated and sequence = $1 end
returning xmin::text::bigint as writer,
  position = $4 and (
    is_repeated
    or not exists (select from versions v where v.generation = version.generation and v.sequence >= $1)
  ) or not exists (select from versions v where v.generation = version.generation) as is_new
