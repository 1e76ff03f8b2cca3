-- Securities whose tables were copied from another generation have no digests.
select i.symbol, d.tables
from identities i
left join digests d using (symbol)
where $1::text[] is null or i.symbol = any ($1)
order by i.symbol
