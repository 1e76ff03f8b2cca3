-- Columns of a schema's views.
select c.relname::text as view, a.attname::text as column
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
where c.relnamespace = to_regnamespace($1) and c.relkind = 'v'
order by c.relname, a.attnum
