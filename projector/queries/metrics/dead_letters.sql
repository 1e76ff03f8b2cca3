select status, count(*) as letters from dead_letters group by status
