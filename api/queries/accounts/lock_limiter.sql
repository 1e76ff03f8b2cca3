-- Locks the limits of account $1 before its keys are changed. Admission locks the rows in the same order.
select from accounts.limiter where account_id = $1 for update
