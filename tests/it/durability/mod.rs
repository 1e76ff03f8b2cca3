//! Durability under faults of the machine (power loss, full disks, corrupted disks), and the memory that a ten times
//! larger feed needs.

mod burst;
mod corrupted;
mod disk_full;
mod power_loss;
mod recorded;
