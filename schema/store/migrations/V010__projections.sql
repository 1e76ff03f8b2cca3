-- Generations from before get the columns that new ones begin with. Projected rows without an amount go, and every security
-- is written once more when it is derived next.
do $$
declare generation text;
begin
  for generation in select nspname from pg_namespace where nspname ~ '^read_g[0-9]+$' loop
    execute format('alter table %I.stocks add column dividend_currency text,
      add column held_rows integer not null default 0', generation);
    execute format('alter table %I.etfs add column dividend_currency text,
      add column held_rows integer not null default 0', generation);
    execute format('alter table %I.quotes add column dividend_currency text', generation);
    execute format('alter table %I.metrics add column price_currency text', generation);
    execute format('update %1$I.metrics m set price_currency = s.currency from %1$I.stocks s where s.symbol = m.symbol',
      generation);
    execute format('delete from %I.dividends where amount is null', generation);
    execute format('alter table %I.dividends add column amount_status text not null default ''declared''', generation);
    execute format('delete from %I.digests', generation);
  end loop;
end $$;
