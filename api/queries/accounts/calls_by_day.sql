-- Calls of account $1 per day and outcome, from day $2 on.
select c.day, c.outcome, sum(c.calls)::bigint as calls from accounts.calls c
where c.account_id = $1 and c.day >= $2
group by c.day, c.outcome order by c.day, c.outcome
