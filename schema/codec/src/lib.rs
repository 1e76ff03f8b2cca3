//! Binary formats in which Postgres tables store price bars and record sets. The log stores price bars in the same
//! format.
//!
//! Invariant: equal values have equal bytes. Two stored values can therefore be compared without decoding them.

pub mod bars;
mod error;
pub mod records;

/// 64-bit digest of a list of byte strings. It also depends on the boundaries between the strings: `(ab, c)` and
/// `(a, bc)` have different digests.
pub fn digest<const N: usize>(parts: [&[u8]; N]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    i64::from_le_bytes(bytes)
}
