with described as (
  update control.generations set as_of = $2, policy = $3, projections = $4, rules = $5 where id = $1
)
update version set method_version = $6
