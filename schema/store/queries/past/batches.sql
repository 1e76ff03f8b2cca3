-- $1 ids of record batches. Kind, sequence and run of each batch. The name of the fact set replaces {facts}.
select frame, kind, sequence, run from {facts}.frames where frame = any ($1)
