-- Number of keys of account $1 that were created within one day.
select count(*) as made from accounts.api_keys where account_id = $1 and created_at > now() - interval '1 day'
