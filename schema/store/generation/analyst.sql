-- What analysts read of one generation, in plain columns: run once, with the new schema analyst_g<N> first in search_path and
-- the generation's own read_g<N> second. A view's name means the table in its definition: the view is not there yet.
create view version as select * from version;
create view symbols as select * from symbols;
create view stocks as select * from stocks;
create view quotes as select * from quotes;
create view fundamentals as select * from fundamentals;
create view metrics as select * from metrics;
create view dividends as select * from dividends;
create view splits as select * from splits;
create view quarantine as select * from quarantine;
create view etfs as select * from etfs;
create view holdings as select * from holdings;
create view sectors as select * from sectors;
create view prices as
  select p.symbol, p.year, b.* from prices p cross join lateral unpacked(p) b;
comment on view prices is 'raw bars of the winning source, one per session; a condition on symbol or year unpacks no other';
create view factors as
  select f.symbol, (a ->> 'ex_date')::date as ex_date, (a -> 'split' ->> 'from')::numeric as split_from,
         (a -> 'split' ->> 'to')::numeric as split_to, (a ->> 'dividend_factor')::numeric as dividend_factor,
         (a ->> 'dividend')::numeric as dividend, (a ->> 'value')::numeric as value,
         coalesce(a -> 'price_only' ->> 'from', '1')::numeric as price_only_from,
         coalesce(a -> 'price_only' ->> 'to', '1')::numeric as price_only_to
  from factors f
  cross join lateral json_array_elements(f.factors) a;

do $$
begin
  -- Its functions are looked up in the generation's schema; its tables stay closed.
  execute format('grant usage on schema %I, %I to dds_analyst', current_schema(), (current_schemas(false))[2]);
  execute format('grant select on all tables in schema %I to dds_analyst', current_schema());
end $$;
