select id from generations where state = 'building' and method_version = $1 order by id limit 1
