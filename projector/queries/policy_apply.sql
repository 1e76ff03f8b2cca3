-- A policy change invalidates earlier reviews.
with unseen as (delete from reviews)
update generations set held_policy = null where held_policy is not null
