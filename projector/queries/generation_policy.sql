select coalesce(policy, held_policy) as policy from control.generations where id = $1
