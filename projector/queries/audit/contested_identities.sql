-- Securities with several sources of one kind of row, under any of their symbols.
select i.identity
from identities i
where i.symbol in (
  select s.canonical from symbols s join records r using (symbol)
  where r.kind in ('dividend', 'split')
  group by s.canonical, r.kind having count(distinct r.source) > 1
  union
  select s.canonical from symbols s join bars b using (symbol)
  group by s.canonical having count(distinct b.source) > 1
)
order by i.symbol
