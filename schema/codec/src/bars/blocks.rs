//! Codec of integer columns, in blocks of 32 values with one bit width. A block begins with one byte for coding and bit
//! width. `unpack.sql` decodes the same format.

use market::bars::MISSING;

use crate::PackedBarsError;

/// Number of values per block; the last block of a column may have fewer.
pub(super) const BLOCK: usize = 32;
/// Number of possible bit widths: 0 to 64.
const WIDTHS: u8 = 65;
/// Number of readable bytes that must follow a block, because 16-byte reads can extend beyond it.
const PADDING: usize = 16;
/// Maximum bit width of codes that are decoded with 8-byte reads.
const NARROW: usize = 57;

/// Encoding of the values of a block as unsigned codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockCoding {
    /// The code is the value itself. Used if no value of the block is negative or absent.
    Plain,
    /// The code is the zigzag code of the value, in which the lowest bit is the sign. Used if a value of the block is
    /// negative and none is absent.
    Signed,
    /// The code is the zigzag code plus one. The code of an absent value is 0. Used if a value of the block is absent.
    Sparse,
}

impl BlockCoding {
    fn of(values: &[i64]) -> Self {
        if values.contains(&MISSING) {
            Self::Sparse
        } else if values.iter().any(|value| *value < 0) {
            Self::Signed
        } else {
            Self::Plain
        }
    }

    fn code(self, value: i64) -> u64 {
        match self {
            Self::Plain => value.cast_unsigned(),
            Self::Signed => zigzag(value),
            Self::Sparse if value == MISSING => 0,
            // The addition cannot overflow, because only [`MISSING`] has the largest zigzag code.
            Self::Sparse => zigzag(value) + 1,
        }
    }
}

/// Encodes a column and appends its blocks to `bytes`.
pub(super) fn write(values: &[i64], bytes: &mut Vec<u8>) {
    for block in values.chunks(BLOCK) {
        let coding = BlockCoding::of(block);
        let mut codes = [0; BLOCK];
        codes.iter_mut().zip(block).for_each(|(code, value)| *code = coding.code(*value));
        let widest = codes.iter().fold(0, |all, code| all | code);
        let width = u64::BITS - widest.leading_zeros();
        bytes.push(coding as u8 * WIDTHS + width.to_le_bytes()[0]);
        let (mut pending, mut bits) = (0u128, 0);
        for code in &codes[..block.len()] {
            pending |= u128::from(*code) << bits;
            bits += width;
            if bits >= u64::BITS {
                bytes.extend_from_slice(&pending.to_le_bytes()[..8]);
                pending >>= u64::BITS;
                bits -= u64::BITS;
            }
        }
        bytes.extend_from_slice(&pending.to_le_bytes()[..bits.div_ceil(8) as usize]);
    }
}

/// True if `byte_count` bytes can contain a column of `value_count` values. Each block of the column needs at least one
/// byte. The check detects damaged counts before memory is reserved.
pub(super) fn can_contain_blocks(byte_count: usize, value_count: usize) -> bool {
    value_count.div_ceil(BLOCK) <= byte_count
}

/// Decodes a column of `values` values. Removes the bytes of the column from the front of `bytes`.
pub(super) fn read(bytes: &mut &[u8], values: usize) -> Result<Vec<i64>, PackedBarsError> {
    // Reserve no memory for a count that does not fit the bytes.
    let mut column = Vec::with_capacity(if can_contain_blocks(bytes.len(), values) { values } else { 0 });
    for_each_block(bytes, values, |block| {
        column.extend_from_slice(block);
        Ok(())
    })?;
    Ok(column)
}

/// Decodes a column of `values` values and passes each decoded block to `take`. Removes the bytes of the column from
/// the front of `bytes`.
pub(super) fn for_each_block(
    bytes: &mut &[u8],
    values: usize,
    mut take: impl FnMut(&[i64]) -> Result<(), PackedBarsError>,
) -> Result<(), PackedBarsError> {
    if !can_contain_blocks(bytes.len(), values) {
        return Err(PackedBarsError::LENGTHS);
    }
    let (mut block, mut left) = ([0; BLOCK], values);
    while left > 0 {
        let block = &mut block[..BLOCK.min(left)];
        read_block(bytes, block)?;
        take(block)?;
        left -= block.len();
    }
    Ok(())
}

fn read_block(bytes: &mut &[u8], values: &mut [i64]) -> Result<(), PackedBarsError> {
    let (head, after) = bytes.split_first().ok_or(PackedBarsError::LENGTHS)?;
    let width = usize::from(head % WIDTHS);
    let bits = width * values.len();
    let (block, rest) = after.split_at_checked(bits.div_ceil(8)).ok_or(PackedBarsError::LENGTHS)?;
    *bytes = rest;
    let left = block.last().map_or(0, |last| u32::from(*last) >> ((bits + 7) % 8 + 1));
    if left > 0 {
        return Err(PackedBarsError::LENGTHS);
    }
    match after.get(..block.len() + PADDING) {
        Some(block) => read_codes(block, width, values),
        // Fewer than [`PADDING`] bytes follow this block, so it is copied to a padded buffer.
        None => {
            let mut padded = [0; BLOCK * 8 + PADDING];
            padded[..block.len()].copy_from_slice(block);
            read_codes(&padded, width, values);
        }
    }
    decode(head / WIDTHS, values)
}

/// Number of complete codes in one 8-byte read, by bit width. The read may start up to 7 bits before the first code. 0
/// for width 0 and for widths above [`NARROW`].
const CODES_PER_READ: [usize; WIDTHS as usize] = codes_per_read();

const fn codes_per_read() -> [usize; WIDTHS as usize] {
    let (mut all, mut width) = ([0; WIDTHS as usize], 1);
    while width < all.len() {
        all[width] = NARROW / width;
        width += 1;
    }
    all
}

/// Extracts codes of `width` bits. `block` contains the codes and at least [`PADDING`] more bytes.
fn read_codes(block: &[u8], width: usize, codes: &mut [i64]) {
    match CODES_PER_READ[width] {
        0 if width == 0 => codes.fill(0),
        0 => {
            let mask = u64::MAX >> (u64::BITS as usize - width);
            for (place, code) in codes.iter_mut().enumerate() {
                let around = u128::from_le_bytes(read_bytes(block, place * width / 8));
                *code = (low_bits(around >> (place * width % 8)) & mask).cast_signed();
            }
        }
        together => {
            let (mask, mut bit) = ((1 << width) - 1, 0);
            for codes in codes.chunks_mut(together) {
                let mut around = u64::from_le_bytes(read_bytes(block, bit / 8)) >> (bit % 8);
                for code in codes {
                    *code = (around & mask).cast_signed();
                    around >>= width;
                }
                bit += together * width;
            }
        }
    }
}

/// Fails if `rest`, the bytes after the last column, is not empty.
pub(super) fn expect_end(rest: &[u8]) -> Result<(), PackedBarsError> {
    if rest.is_empty() { Ok(()) } else { Err(PackedBarsError::LENGTHS) }
}

/// Returns `N` bytes of a block, starting at the index `from`.
fn read_bytes<const N: usize>(bytes: &[u8], from: usize) -> [u8; N] {
    let mut around = [0; N];
    around.copy_from_slice(&bytes[from..from + N]);
    around
}

/// Replaces codes by the values that they encode. `coding` is the [`BlockCoding`] as a number.
fn decode(coding: u8, codes: &mut [i64]) -> Result<(), PackedBarsError> {
    let value = |code: &i64| unzigzag(code.cast_unsigned());
    match coding {
        0 => {}
        1 => codes.iter_mut().for_each(|code| *code = value(code)),
        2 => codes.iter_mut().for_each(|code| {
            *code = if *code == 0 { MISSING } else { value(&code.wrapping_sub(1)) };
        }),
        _ => return Err(PackedBarsError::Damaged("a block has an unknown coding")),
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "the bits above are other codes'")]
fn low_bits(bits: u128) -> u64 {
    bits as u64
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn unzigzag(code: u64) -> i64 {
    (code >> 1).cast_signed() ^ -(code & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values() -> impl Strategy<Value = Vec<i64>> {
        let value = prop_oneof![
            8 => 0i64..1_000_000,
            2 => -1_000i64..1_000,
            1 => Just(MISSING),
            1 => any::<i64>(),
        ];
        prop_oneof![
            prop::collection::vec(0i64..1_000_000, 0..100),
            prop::collection::vec(-1_000i64..1_000, 0..100),
            prop::collection::vec(value, 0..100),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(one in values(), other in values()) {
            let mut bytes = Vec::new();
            write(&one, &mut bytes);
            write(&other, &mut bytes);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(read(&mut rest, one.len()).unwrap(), one);
            prop_assert_eq!(read(&mut rest, other.len()).unwrap(), other);
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn bytes_that_end_too_early_are_an_error(values in values(), cut in any::<prop::sample::Index>()) {
            let mut bytes = Vec::new();
            write(&values, &mut bytes);
            prop_assume!(!bytes.is_empty());
            prop_assert!(read(&mut &bytes[..cut.index(bytes.len())], values.len()).is_err());
        }
    }

    fn check(values: &[i64], expected: &[u8]) {
        let mut bytes = Vec::new();
        write(values, &mut bytes);
        assert_eq!(bytes, expected, "{values:?}");
    }

    #[test]
    fn a_block_is_as_wide_as_its_widest_value() {
        check(&[], &[]);
        check(&[0; 32], &[0]);
        check(&[1, 2, 3], &[2, 0b11_10_01]);
        check(&[1, -1, 2], &[65 + 3, 0b00_001_010, 0b1]);
        check(&[MISSING, 0, 3], &[2 * 65 + 3, 0b11_001_000, 0b1]);
        check(&[MISSING; 5], &[2 * 65]);
        check(&[i64::MAX], &[63, 255, 255, 255, 255, 255, 255, 255, 127]);
        // Each block stores its width.
        check(&[&[0; 32][..], &[256]].concat(), &[0, 9, 0, 1]);
    }

    #[test]
    fn no_more_is_made_room_for_than_there_can_be() {
        assert!(read(&mut &[0; 4][..], usize::MAX).is_err());
        assert!(matches!(read(&mut &[255, 0][..], 1), Err(PackedBarsError::Damaged(_))));
    }
}
