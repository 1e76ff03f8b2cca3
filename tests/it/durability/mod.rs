//! Durability against machine faults: power loss, full or corrupted disks, and a feed ten times larger than the last one.

mod burst;
mod corrupted;
mod disk_full;
mod power_loss;
mod recorded;
