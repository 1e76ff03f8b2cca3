//! Size limits of record batches.

/// Target size of a body, in bytes. If a row would make the body larger, the row goes into the next record batch.
pub const TARGET_BYTES: usize = 256 * 1024;
/// Maximum size of a body after decompression, in bytes. The limit protects readers from decompression bombs.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
