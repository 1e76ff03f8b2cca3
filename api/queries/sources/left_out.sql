-- Securities that rest on a source which must not be redistributed, with these sources.
select o.symbol, o.sources from version v cross join lateral left_out(v.generation) o
