delete from accounts.sessions where hash = $1 returning account_id
