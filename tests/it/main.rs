//! Every integration test in one program, one file per area: one link, and one pair of servers for all.

mod accounts;
mod api_access;
mod api_answers;
mod api_contract;
mod api_sql;
mod api_world;
mod attacks;
mod exact;
mod explained;
mod faults;
mod first_answer;
mod generations;
mod golden;
mod ingest_load;
mod limits;
mod limits_model;
mod lists_by_rule;
mod log_copies;
mod outage;
mod replay;
mod replica;
mod roles;
mod servers;
mod vendors;
