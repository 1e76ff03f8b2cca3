-- Identity columns of the restored tables in schema $1, with their sequences. A restore continues each sequence after the greatest
-- value.
select a.attrelid::regclass::text as name, quote_ident(a.attname) as column_name,
       pg_get_serial_sequence(a.attrelid::regclass::text, a.attname) as counter
from pg_attribute a
join pg_class c on c.oid = a.attrelid
where (c.relnamespace = 'accounts'::regnamespace or c.oid = to_regclass('control.version_inputs'))
  and c.relnamespace = $1::text::regnamespace and c.relkind in ('r', 'p') and a.attidentity <> ''
order by 1
