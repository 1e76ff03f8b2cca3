-- $1 sources. Symbols with rows of these sources.
select symbol from bars where source = any ($1)
union
select symbol from records where source = any ($1)
