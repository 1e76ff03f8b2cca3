-- Search terms of each security that its list row lacks: ISIN and former symbols.
select v.generation as version_generation, v.sequence as version_sequence, v.as_of as version_as_of,
  v.position as version_position, v.is_repeated as version_is_repeated, t.symbol, t.identifiers ->> 'isin' as isin,
  array(select s.symbol from symbols s where s.canonical = t.symbol and s.symbol <> t.symbol and s.symbol !~ '[:@]') as former_symbols
from version v left join stocks t on true
order by t.symbol
