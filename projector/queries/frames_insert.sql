insert into frames (frame, sequence, kind, source, run, file, line, rows)
select frame, sequence, kind, source, run, file, line, rows from staged_frames
on conflict (frame) do nothing
