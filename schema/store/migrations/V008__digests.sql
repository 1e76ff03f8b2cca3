-- Generations from before get the table that new ones begin with; empty, it has every row written once more.
do $$
declare generation text;
begin
  for generation in select nspname from pg_namespace where nspname ~ '^read_g[0-9]+$' loop
    execute format('create table %I.digests (symbol text primary key, tables bigint[] not null)', generation);
    execute format('alter table %I.digests owner to dds_projector', generation);
    execute format('grant select on %I.digests to dds_api', generation);
  end loop;
end $$;
