-- Symbols, also former ones, of securities that rest on a source which must not be redistributed, with these sources.
select s.symbol, o.sources
from version v
cross join lateral left_out(v.generation) o
join symbols s on s.canonical = o.symbol
