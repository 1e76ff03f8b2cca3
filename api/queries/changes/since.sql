-- $1 an instant or null. What is needed to tell what changed: whether the generation is the served one, from where on
-- changes are known, and the last position before the instant, a minute earlier for clocks that differ.
select j.id as journal, j.begins, j.begun_at, v.position, a.generation is not null as served,
  (select c.position from changes c where c.at < $1::timestamptz - interval '1 minute' order by c.at desc, c.position desc limit 1) as before
from version v
cross join journal j
left join active a on a.generation = v.generation
