-- What follows the live policy goes on with it as it is before the change. One that is being built is the next generation: it
-- follows the change, and derives again what it derived before.
update generations set held_policy = $1
where policy is null and held_policy is null and state = 'tailing'
