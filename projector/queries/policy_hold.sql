-- Stores the previous policy in every generation that follows the live one. A building generation is excluded: it
-- follows the change and derives again.
update generations set held_policy = $1
where policy is null and held_policy is null and state = 'tailing'
