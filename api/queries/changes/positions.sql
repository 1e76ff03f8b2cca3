-- $1 canonical symbols. Journal positions of the newest changes of their dividends. An empty id stands for all rows of
-- its symbol without a change of their own. The row without a symbol has the position up to which changes were pruned.
select c.symbol, c.id, c.position from changes c where c.kind = 'dividends' and c.symbol = any ($1)
union all
select null, null, j.begins from journal j
