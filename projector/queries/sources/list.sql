select coalesce(s.source, l.source) as source, coalesce(s.kinds, '{}') as kinds, l.licence, l.url, l.attribution,
  l.redistribution, l.stated_at, l.stated_by
from (
  select o.source, array_agg(distinct o.kind order by o.kind) as kinds
  from control.active a cross join lateral control.loaded_sources(a.generation) o group by o.source
) s
full join control.licences l using (source)
order by 1
