-- Sets the inputs of the served generation's derivation, except the live policy.
update control.generations
set policy = $2::text::json, held_policy = $3::text::json, as_of = $4, rules = $5::text::json, note = $6
where id = $1
