-- $1 canonical symbols, or null for all sources. Sources with their licences. A source without loaded rows is listed if it
-- has a licence and all sources are asked for.
with loaded as (
  select s.source, s.kind from version v cross join lateral security_sources(v.generation, $1::text[], null) s where $1::text[] is not null
  union
  select s.source, s.kind from version v cross join lateral loaded_sources(v.generation) s where $1::text[] is null
), named as (
  select source from loaded union select source from licences where $1::text[] is null
)
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, n.source,
  array(select distinct o.kind from loaded o where o.source = n.source order by 1) as kinds,
  l.licence, l.url, l.attribution, l.redistribution, l.stated_at
from version v
left join named n on true
left join licences l on l.source = n.source
order by n.source
