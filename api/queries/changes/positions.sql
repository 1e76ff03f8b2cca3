-- $1 canonical symbols. Journal positions of the newest changes of their dividends. A row with an empty id is for all
-- dividends of the symbol that have no own change. The row without a symbol has the position up to which changes were
-- pruned.
select c.symbol, c.id, c.position from changes c where c.kind = 'dividends' and c.symbol = any ($1)
union all
select null, null, j.begins from journal j
