-- Start of the transaction that has locked the fact set $1, for example to derive read tables; null if none has. The
-- renewal of the lease waits for such a transaction, so a lease that is not valid does not show that its holder ended.
select min(session.xact_start) as busy_since
from pg_locks lock
join pg_stat_activity session using (pid)
where lock.relation = 'control.fact_sets'::regclass and lock.mode = 'RowShareLock' and lock.granted
  and session.pid <> pg_backend_pid()
  and not exists (select from control.fact_sets where name = $1 for key share skip locked)
