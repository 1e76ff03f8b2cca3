-- $1 runs. They never count in this fact set, whose name replaces {facts}.
insert into {facts}.run_changes (run, sequence, state, reason, at, operator)
select run, 0, 'excluded', 'left out of the fact set', now(), session_user from unnest($1::text[]) as left_out (run)
on conflict (run, sequence) do nothing
