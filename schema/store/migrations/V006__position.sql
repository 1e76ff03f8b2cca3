-- A sequence alone does not name a message: a log that lost its end numbers new messages the same.
alter table control.fact_sets add column checkpoint_message text;
comment on column control.fact_sets.checkpoint_message is 'Nats-Msg-Id of the message at checkpoint; empty: it had none';
