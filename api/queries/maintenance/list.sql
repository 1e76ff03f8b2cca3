-- Planned work that ends after time $1, the latest first, at most $2 entries.
select id, starts_at as start, ends_at as "end", description,
       case when now() < starts_at then 'planned' when now() < ends_at then 'in_progress' else 'completed' end as state
from accounts.maintenance
where ends_at > $1
order by starts_at desc, id desc
limit $2
