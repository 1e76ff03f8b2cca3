-- Calendar years in which a source brought a dividend of any security, in every fact set. New fact sets have the table
-- from generation/records.sql; the projector fills it before its first batch.
do $$
declare fact_set text;
begin
  set local role dds_projector;
  for fact_set in select name from control.fact_sets loop
    execute format(
      'create table %I.dividend_feeds (source text collate "C" not null, year integer not null, primary key (source, year))',
      fact_set);
    execute format('grant select on %I.dividend_feeds to dds_api', fact_set);
  end loop;
  reset role;
end $$;
