-- $1 ids of record batches: kind and sequence of each in the log. The name of the fact set replaces {facts}.
select frame, kind, sequence from {facts}.frames where frame = any ($1)
