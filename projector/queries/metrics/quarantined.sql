select reason, count(*) as rows from quarantine group by reason
