-- All of account $1 but $2, which may be null.
delete from accounts.sessions where account_id = $1 and id is distinct from $2
