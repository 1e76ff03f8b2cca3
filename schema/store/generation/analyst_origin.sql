-- Origin of rows in the log, for analysts. Run once per generation, with its schema of views first in search_path and
-- its fact set second. In each definition, the name of the view means the table, because the view does not exist yet.
create view record_batches as
  select encode(frame, 'hex') as frame, sequence, kind, source, run, file, line, rows from frames;
create view rejects as
  select encode(frame, 'hex') as frame, item, run, source, file, line, reason, message, row from rejects;

comment on view record_batches is 'record batches of the log with their file; a quarantined row of the same source and kind is in a batch by its line';
comment on column record_batches.frame is 'id of the record batch, hexadecimal';
comment on column record_batches.sequence is 'message of the log';
comment on column record_batches.kind is 'kind of the rows';
comment on column record_batches.source is 'feed of the rows';
comment on column record_batches.run is 'load that published the batch, as in ingest runs';
comment on column record_batches.file is 'file of the rows; empty if there was none';
comment on column record_batches.line is 'line of the first row in its file';
comment on column record_batches.rows is 'number of rows';
comment on view rejects is 'feed rows that cannot be used, with the reason';
comment on column rejects.frame is 'id of the record batch, hexadecimal';
comment on column rejects.item is 'position in the record batch';
comment on column rejects.run is 'load that rejected the row, as in ingest runs';
comment on column rejects.source is 'feed of the row';
comment on column rejects.file is 'file of the row';
comment on column rejects.line is 'line of the row in its file';
comment on column rejects.reason is 'stable reason code';
comment on column rejects.message is 'fault as a sentence';
comment on column rejects.row is 'the row as it was written';

grant select on record_batches, rejects to dds_analyst;
