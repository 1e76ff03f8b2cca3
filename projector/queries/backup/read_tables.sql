-- Read tables of a generation, without those that describe only how rows were written.
select c.relname::text as name
from pg_class c
where c.relnamespace = to_regnamespace($1) and c.relkind = 'r' and c.relname not in ('version', 'digests')
order by 1
