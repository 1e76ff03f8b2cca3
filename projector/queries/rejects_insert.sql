insert into rejects (frame, item, run, source, file, line, reason, message, row)
select frame, item, run, source, file, line, reason, message, row from staged_rejects
on conflict (frame, item) do nothing
