-- $1 instant or null. Journal, start of the journal, and true if the generation is served. `before` is the last version
-- at the instant. Clocks may differ by a minute: only a later instant is in the future.
select j.id as journal, j.begins, j.begun_at, v.position, a.generation is not null as served,
  coalesce($1::timestamptz > clock_timestamp() + interval '1 minute', false) as is_future,
  (select s.position from versions s where s.at <= $1::timestamptz order by s.at desc, s.position desc limit 1) as before
from version v
cross join journal j
left join active a on a.generation = v.generation
