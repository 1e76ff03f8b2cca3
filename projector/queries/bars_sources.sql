select distinct symbol, source from bars
