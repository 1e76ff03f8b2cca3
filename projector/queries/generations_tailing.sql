select id, fact_set, benchmark, reporting_currency, as_of, policy, rules from generations
where fact_set = $1 and state = 'tailing' and method_version = $2
order by id
