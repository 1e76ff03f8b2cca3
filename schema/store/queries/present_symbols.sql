-- $1 symbols. Those with facts.
select symbol from unnest($1::text[]) as asked (symbol)
where exists (select from records r where r.symbol = asked.symbol)
  or exists (select from bars b where b.symbol = asked.symbol)
