-- What was looked at before is not what would be promoted after the change.
with unseen as (delete from reviews)
update generations set held_policy = null where held_policy is not null
