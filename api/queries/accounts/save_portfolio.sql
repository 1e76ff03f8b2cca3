-- Saves holdings $3 or transactions $4 as portfolio $2 of account $1. A new portfolio is refused if the account already has
-- $5 portfolios.
insert into accounts.portfolios as p (account_id, name, holdings, transactions)
select $1::bigint, $2::text, $3::text, $4::text
where exists (select from accounts.portfolios o where o.account_id = $1 and o.name = $2)
  or $5::bigint > (select count(*) from accounts.portfolios o where o.account_id = $1)
on conflict (account_id, name) do update
set holdings = excluded.holdings, transactions = excluded.transactions, edits = p.edits + 1, saved_at = now()
