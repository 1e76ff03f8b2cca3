select kind, source, valid_from, valid_to, rank from source_policy order by kind, rank, source, valid_from, valid_to
