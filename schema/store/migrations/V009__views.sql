-- In every fact set: the runs that a record batch belongs to, and the states of runs. New fact sets have them from
-- generation/.
do $$
declare name text;
begin
  set local role dds_projector;
  for name in select f.name from control.fact_sets f loop
    execute format('create index frames_by_run on %I.frames (run)', name);
    execute format('create table %I.batch_runs (frame bytea not null, run text not null, sequence bigint not null, primary key (frame, run))', name);
    execute format('create index batch_runs_by_run on %I.batch_runs (run)', name);
    execute format('create table %I.run_changes (run text not null, sequence bigint not null, state text not null, reason text not null, at timestamptz not null, operator text not null, primary key (run, sequence))', name);
    execute format('alter table %I.dividend_feeds add column ended bigint, drop constraint dividend_feeds_pkey, add primary key (source, year, sequence)', name);
    execute format('grant select on %I.batch_runs, %I.run_changes to dds_api', name, name);
  end loop;
  reset role;
end $$;
