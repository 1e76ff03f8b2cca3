-- Saves $3 as portfolio $2 of account $1. A new portfolio is refused if the account already has $4 portfolios.
insert into accounts.portfolios as p (account_id, name, holdings)
select $1::bigint, $2::text, $3::text
where exists (select from accounts.portfolios o where o.account_id = $1 and o.name = $2)
  or $4::bigint > (select count(*) from accounts.portfolios o where o.account_id = $1)
on conflict (account_id, name) do update set holdings = excluded.holdings, edits = p.edits + 1, saved_at = now()
