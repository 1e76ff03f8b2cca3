-- Refused calls of account $1 per outcome and endpoint, from day $2 on, newest first.
select c.outcome, c.endpoint, sum(c.calls)::bigint as calls, max(c.last_at) as last_at from accounts.calls c
where c.account_id = $1 and c.day >= $2 and c.outcome <> 'answered'
group by c.outcome, c.endpoint order by last_at desc limit 20
