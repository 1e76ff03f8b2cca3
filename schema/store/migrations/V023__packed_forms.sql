-- How the bars of a fact set and the prices of a generation are packed: 1 in varints, 2 in blocks (market::bars). After the
-- migrations, `projector migrate` packs those of an older form again.
alter table control.fact_sets add column packed_form integer not null default 1;
alter table control.fact_sets alter column packed_form set default 2;
alter table control.generations add column packed_form integer not null default 1;
alter table control.generations alter column packed_form set default 2;
