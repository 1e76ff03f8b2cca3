select distinct source from frames where kind = $1 order by source
