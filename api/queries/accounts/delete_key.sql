update accounts.api_keys set revoked_at = now() where id = $1
