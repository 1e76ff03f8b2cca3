-- What came after the paid period becomes the account's own tier, with months of its own.
update accounts.accounts
set tier = next_tier, next_tier = 'free', paid_until = null,
  period_start = case when next_tier <> 'free' then paid_until end
where id = $1 and paid_until <= now()
