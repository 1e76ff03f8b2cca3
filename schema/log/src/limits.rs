//! Size limits of record batches.

/// Target size of a body, in bytes.
pub const TARGET_BYTES: usize = 256 * 1024;
/// Maximum size of a decompressed body, in bytes. It protects readers from decompression bombs.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
