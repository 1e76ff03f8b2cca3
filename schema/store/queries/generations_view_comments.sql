-- Comments of the analysts' list of generations.
comment on column analyst.generations.generation is 'number of the generation';
comment on column analyst.generations.schema is 'schema of its views: set search_path = analyst_g<N>, analyst';
comment on column analyst.generations.served is 'true for the generation that the API reads; new sessions begin in it';
comment on column analyst.generations.state is 'tailing: it follows the log; frozen: it stays as it is';
comment on column analyst.generations.method_version is 'version of the rules that derived its tables';
comment on column analyst.generations.rules is 'rule parameters that differ from their defaults';
comment on column analyst.generations.note is 'reason of its last promotion';
comment on column analyst.generations.benchmark is 'security whose returns are the benchmark of beta';
comment on column analyst.generations.frozen_at is 'market date of a frozen generation; null if it follows the log';
comment on column analyst.generations.created_at is 'time of its creation'
