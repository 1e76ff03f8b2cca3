-- Securities with different names that have one identifier. Each of them has a key in `symbols` that consists of the
-- identifier, a space and its symbol.
select null as topic, max(identifier) as symbol, seen, count(*) over () as total
from (
  select split_part(n.symbol, ' ', 1) as identifier,
    string_agg(format('%s (%s)', s.symbol, s.name), ', ' order by s.symbol) as seen
  from symbols n join stocks s on s.symbol = n.canonical
  where n.symbol ~ '^[a-z]+:[^@ ]+ '
  group by 1
  having count(distinct s.name) > 1
) claimed
group by seen
order by 2
limit 10
