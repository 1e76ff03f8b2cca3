//! What machines do to data: power that fails, disks that are full or rot, and a feed ten times as large as the last.

mod burst;
mod corrupted;
mod disk_full;
mod power_loss;
mod recorded;
