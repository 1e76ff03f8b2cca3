delete from accounts.sessions where account_id = $1
