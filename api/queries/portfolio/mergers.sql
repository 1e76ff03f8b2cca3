-- $1 canonical symbols. Securities among them that were merged into another one.
select i.symbol, (i.identity #>> '{security,record,delisted_on}')::date as last_day, s.canonical as successor,
  (i.identity #>> '{security,record,merger_ratio}')::numeric as ratio
from identities i
cross join version v
join symbols s on s.symbol = i.identity #>> '{security,record,successor}'
where i.symbol = any ($1) and i.identity #>> '{security,record,status}' = 'delisted'
  and (i.identity #>> '{security,record,delisted_on}')::date <= v.as_of
