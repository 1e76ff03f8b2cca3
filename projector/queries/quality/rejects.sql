-- Rejected rows by source and reason.
select source, reason, count(*) as rows from rejects group by source, reason
