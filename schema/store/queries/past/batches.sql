-- $1 ids of record batches. Kind and sequence of each batch in the log. The name of the fact set replaces {facts}.
select frame, kind, sequence from {facts}.frames where frame = any ($1)
