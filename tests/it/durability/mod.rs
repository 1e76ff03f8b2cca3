//! Tests with power losses, full disks and corrupted disks. Another test limits the memory that a large feed needs.

mod burst;
mod corrupted;
mod disk_full;
mod power_loss;
mod recorded;
