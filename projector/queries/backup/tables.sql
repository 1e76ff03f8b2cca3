-- Tables of the backup in schema $1, each after the tables it references: the logged tables of accounts, the source
-- policy, the expectations and measured loads, the licences, the monthly quality, and the served versions.
with recursive kept as (
  select c.oid from pg_class c
  where c.relkind in ('r', 'p') and c.relpersistence = 'p' and not c.relispartition
    and c.relnamespace = $1::text::regnamespace
    and (c.relnamespace = 'accounts'::regnamespace or c.oid = any ('{control.source_policy, control.expectations, control.measured_loads, control.source_licences, control.quality_months, control.version_inputs, control.versions, control.factor_changes}'::regclass[]))
), depths as (
  select oid, 0 as depth from kept
  union
  select r.conrelid, d.depth + 1
  from depths d
  join pg_constraint r on r.contype = 'f' and r.confrelid = d.oid and r.conrelid <> r.confrelid
  where d.depth < 100
)
select k.oid::regclass::text as name,
       (select array_agg(quote_ident(a.attname) order by a.attnum) from pg_attribute a
        where a.attrelid = k.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns
from kept k
order by (select max(depth) from depths d where d.oid = k.oid), 1
