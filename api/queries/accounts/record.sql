-- $4: who did it; without it the role of the database.
insert into accounts.audit (account_id, action, details, actor) values ($1, $2, $3, coalesce($4, session_user))
