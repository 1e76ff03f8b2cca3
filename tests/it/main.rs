//! Every integration test in one program, one file per area: one link, and one pair of servers for all.

mod first_answer;
mod replay;
mod roles;
mod servers;
