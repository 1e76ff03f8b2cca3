-- Staging tables of one connection; every commit empties them.
create temp table if not exists staged_frames (like frames) on commit delete rows;
create temp table if not exists staged_rejects (like rejects) on commit delete rows;
create temp table if not exists staged_dead_letters (like dead_letters including defaults) on commit delete rows;
