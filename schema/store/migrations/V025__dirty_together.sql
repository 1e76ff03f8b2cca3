-- Symbols that change together are marked together: a row for each of ten thousand was a tenth of a second of every day.
alter table control.dirty rename to dirty_apart;

-- Symbols whose facts changed since a generation was last derived; committed with the facts.
create table control.dirty (
  generation integer not null references control.generations on delete cascade,
  symbols text[] not null,
  reference boolean not null
);
comment on column control.dirty.symbols is 'the empty symbol, with reference, asks to look again although the log is quiet';
comment on column control.dirty.reference is 'true: security records changed, so identities are resolved again';

insert into control.dirty (generation, symbols, reference)
select generation, array_agg(symbol), reference from control.dirty_apart group by generation, reference;
drop table control.dirty_apart;

grant select, insert, update, delete on control.dirty to dds_projector;
