-- Currency of sums over securities, and the figures in it. New generations have the columns of the read tables from
-- generation/.
alter table control.generations add column reporting_currency text not null default 'USD';
comment on column control.generations.reporting_currency is 'currency in which market capitalisations are added and compared';
alter table control.version_inputs add column reporting_currency text not null default 'USD';
comment on column control.version_inputs.reporting_currency is 'currency in which market capitalisations are added and compared';

do $$
declare name text; kind text;
begin
  set local role dds_projector;
  for name in select id::text from control.generations loop
    foreach kind in array array['stocks', 'etfs'] loop
      execute format('alter table %I.%I add column reporting_market_cap bigint', 'read_g' || name, kind);
      execute format('update %I.%I set reporting_market_cap = market_cap where currency = ''USD''', 'read_g' || name, kind);
      execute format('create or replace view %I.%I as select * from %I.%I', 'analyst_g' || name, kind, 'read_g' || name, kind);
    end loop;
    execute format('alter table %I.sectors add column currency text not null default ''USD'', add column unconverted_count integer not null default 0', 'read_g' || name);
    execute format('alter table %I.sectors alter column currency drop default, alter column unconverted_count drop default', 'read_g' || name);
    execute format('create or replace view %I.sectors as select * from %I.sectors', 'analyst_g' || name, 'read_g' || name);
  end loop;
  reset role;
end $$;
