-- $1 place of a table among a security's digests: securities whose rows of it are not those of the generation before.
select coalesce(d.symbol, b.symbol) as symbol
from digests d full join {before}.digests b on b.symbol = d.symbol
where d.tables[$1] is distinct from b.tables[$1]
