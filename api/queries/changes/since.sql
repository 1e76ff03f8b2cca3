-- $1 instant or null. Journal, start of the journal, and true if the generation is served. Clocks may differ by a minute:
-- the last position before the instant is taken one minute earlier, and only a later instant is in the future.
select j.id as journal, j.begins, j.begun_at, v.position, a.generation is not null as served,
  coalesce($1::timestamptz > clock_timestamp() + interval '1 minute', false) as is_future,
  (select c.position from changes c where c.at < $1::timestamptz - interval '1 minute' order by c.at desc, c.position desc limit 1) as before
from version v
cross join journal j
left join active a on a.generation = v.generation
