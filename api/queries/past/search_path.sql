-- $1 the schema of the facts: its names come first for the rest of the transaction.
select set_config('search_path', $1 || ',' || current_setting('search_path'), true)
