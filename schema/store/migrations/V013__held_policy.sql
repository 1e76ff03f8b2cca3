-- A change of the policy waits for the next generation: those that are there go on with the one they were derived with.
alter table control.generations add column held_policy json;
comment on column control.generations.held_policy is 'the live policy as it was before a change that waits; null: nothing waits';
