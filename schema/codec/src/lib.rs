//! Binary formats of stored facts and read tables: packed price bars and packed record sets.
//!
//! Invariant: equal values have equal bytes. Two stored values can therefore be compared without decoding them.

pub mod bars;
pub mod records;

/// 64-bit digest of a list of byte strings. The boundaries between the strings count: `(ab, c)` and `(a, bc)` have
/// different digests.
pub fn digest<const N: usize>(parts: [&[u8]; N]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    i64::from_le_bytes(bytes)
}
