-- Digests of the tables of each security. Securities whose tables were copied from another generation have no digests.
select i.symbol, d.tables from identities i left join digests d using (symbol) order by i.symbol
