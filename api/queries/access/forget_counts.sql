-- Deletes statistics that are older than thirteen months.
delete from accounts.calls where day < $1::date - interval '13 months'
