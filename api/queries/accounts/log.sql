-- Newest $2 audit entries of account $1, newest first.
select d.at, d.actor, d.action, d.details from accounts.audit d where d.account_id = $1 order by d.id desc limit $2
