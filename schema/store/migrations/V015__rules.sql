-- What a generation's rules deviate in, and why it was promoted.
alter table control.generations
  add column rules json not null default '{}',
  add column note text;
comment on column control.generations.rules is 'rule parameters that are not their defaults, by name; their values as text';
comment on column control.generations.note is 'what was said when it was last promoted';
