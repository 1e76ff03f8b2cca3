-- Years written before have a digest of 0, which no served year has: they are read whole until they change.
do $$
declare fact_set text;
begin
  for fact_set in select name from control.fact_sets loop
    execute format('alter table %I.bars add column if not exists digest bigint not null default 0', fact_set);
  end loop;
end $$;
