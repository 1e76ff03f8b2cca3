-- Flags of active securities, most frequent first. Flags of withdrawn records are counted as one flag.
select case when f.flag like 'cancelled:%' then 'cancelled' else f.flag end as flag,
  count(distinct m.symbol) as securities, min(m.symbol) as example
from metrics m join stocks s on s.symbol = m.symbol and s.is_active
cross join lateral json_array_elements_text(m.flags) f (flag)
group by 1 order by 2 desc, 1
