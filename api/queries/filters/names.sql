-- Names that filters accept, with the field of each filter. Delisted securities and closed funds are included.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, n.field, n.name
from version v
left join (
  select 'sector' as field, sector as name from stocks
  union select 'industry', industry from stocks
  union select 'exchange', exchange from stocks
  union select 'country', country from stocks
  union select 'index', json_array_elements_text(indexes) from stocks
  union select 'issuer', issuer from etfs
  union select 'asset_class', asset_class from etfs
  union select 'category', category from etfs
  union select 'strategy', strategy from etfs
) n on n.name is not null
