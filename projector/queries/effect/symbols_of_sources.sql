-- $1 sources. Every symbol that they have rows of.
select symbol from bars where source = any ($1)
union
select symbol from records where source = any ($1)
