-- $1 instant or null. Journal, start of the journal, and true if the generation is served. The last position before the
-- instant is taken one minute earlier, because clocks may differ.
select j.id as journal, j.begins, j.begun_at, v.position, a.generation is not null as served,
  (select c.position from changes c where c.at < $1::timestamptz - interval '1 minute' order by c.at desc, c.position desc limit 1) as before
from version v
cross join journal j
left join active a on a.generation = v.generation
