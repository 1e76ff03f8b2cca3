select id, fact_set, benchmark, reporting_currency, as_of, policy, rules, method_version, state, projections, rebuilt_to from generations where id = $1
