-- Staging tables of one connection; emptied by every commit.
create temp table staged_observations (like facts.observations) on commit delete rows;
create temp table staged_bars (like facts.bars) on commit delete rows;
create temp table staged_frames (like facts.frames) on commit delete rows;
create temp table staged_rejects (like facts.rejects) on commit delete rows;
create temp table staged_dead_letters (like control.dead_letters including defaults) on commit delete rows;
