-- Deleted accounts of the address too: what was done stays known.
select d.at, d.actor, d.action, d.details
from accounts.audit d join accounts.accounts a on a.id = d.account_id
where lower(a.email) = $1
order by d.id
