select from fact_sets f
where f.name = $1 and f.name <> 'facts' and not exists (select from generations g where g.fact_set = f.name)
