//! Size limits of record batches.

/// Frames aim at this many bytes of body …
pub const TARGET_BYTES: usize = 256 * 1024;
/// … and never hold more than this, decompressed (a reader's guard against bombs).
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
