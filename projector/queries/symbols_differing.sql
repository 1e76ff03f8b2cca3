-- Symbols that do not name the same security as in the other generation.
select coalesce(d.symbol, b.symbol) as symbol, b.canonical as before, d.canonical as after
from symbols d full join {before}.symbols b on b.symbol = d.symbol
where d.canonical is distinct from b.canonical
