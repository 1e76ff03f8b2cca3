-- After the paid period, makes the next tier the tier of account $1. A paid next tier begins its own months.
update accounts.accounts
set tier = next_tier, next_tier = 'free', paid_until = null,
  period_start = case when next_tier <> 'free' then paid_until end
where id = $1 and paid_until <= now()
