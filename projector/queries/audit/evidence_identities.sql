-- Securities with evidence records of a price file, under any of their symbols.
select i.identity
from identities i
where exists (
  select from records r join symbols s on s.symbol = r.symbol where r.kind = 'evidence' and s.canonical = i.symbol
)
order by i.symbol
