-- Announces planned work. $1 start, $2 end, $3 description.
insert into accounts.maintenance (starts_at, ends_at, description) values ($1, $2, $3) returning id
