-- What follows the live policy goes on with it as it is before the change.
update generations set held_policy = $1
where policy is null and held_policy is null and state in ('building', 'tailing')
