-- $1 index of a table in a security's digests. Securities whose rows in this table differ between the two generations.
select coalesce(d.symbol, b.symbol) as symbol
from digests d full join {before}.digests b on b.symbol = d.symbol
where d.tables[$1] is distinct from b.tables[$1]
