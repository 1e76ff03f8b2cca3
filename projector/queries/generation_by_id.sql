select id, fact_set, benchmark, as_of, policy, rules, method_version, state, projections, rebuilt_to from generations where id = $1
