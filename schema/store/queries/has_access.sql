-- $1 role; null for the role of the connection. $2 schema. True if the role may use the schema; false if one of them does
-- not exist.
select coalesce(bool_or(has_schema_privilege(r.oid, s.oid, 'usage')), false)
from pg_roles r
join pg_namespace s on s.nspname = $2::text
where r.rolname = coalesce($1::text, current_user)
