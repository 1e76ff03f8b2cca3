update generations set held_policy = null where held_policy is not null
