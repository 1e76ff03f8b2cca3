-- Audit log of the address $1, including its deleted accounts.
select d.at, d.actor, d.action, d.details
from accounts.audit d join accounts.accounts a on a.id = d.account_id
where lower(a.email) = $1
order by d.id
