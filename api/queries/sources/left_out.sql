-- Symbols, also former ones, of securities that rest on a source which must not be redistributed, with these sources. The
-- row without a symbol has such sources of exchange rates.
select s.symbol, o.sources
from version v
cross join lateral left_out(v.generation) o
join symbols s on s.canonical = o.symbol
union all
select null, array_agg(l.source order by l.source)
from version v
cross join lateral loaded_sources(v.generation) l
join licences c using (source)
where l.kind = 'fx' and not c.redistribution
having count(*) > 0
