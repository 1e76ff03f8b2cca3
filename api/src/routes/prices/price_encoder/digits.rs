//! Conversion of integers to decimal digits, optimized for price responses.

/// Quotient `a / b`, rounded half away from zero.
pub(super) fn divide_rounded(a: i128, b: i128) -> i128 {
    let (magnitude, divisor) = (a.unsigned_abs(), b.unsigned_abs());
    let rounded = match (u64::try_from(magnitude), u64::try_from(divisor)) {
        // Most numbers fit into 64 bits, where division is ten times faster.
        (Ok(magnitude), Ok(divisor)) => {
            u128::from(magnitude / divisor + u64::from(magnitude % divisor >= divisor.div_ceil(2)))
        }
        _ => magnitude / divisor + u128::from(magnitude % divisor >= divisor.div_ceil(2)),
    };
    // Only i128::MIN / -1 would overflow, and prices never reach it.
    let rounded = rounded.cast_signed();
    if (a < 0) == (b < 0) { rounded } else { -rounded }
}

/// Writes an integer with `width` digits, including leading zeros. `width` is at most 20.
pub(super) fn write_digits(out: &mut Vec<u8>, value: u64, width: usize) {
    let mut buffer = [b'0'; 20];
    let mut rest = value;
    for digit in buffer[..width].iter_mut().rev() {
        *digit = last_digit(rest);
        rest /= 10;
    }
    out.extend_from_slice(&buffer[..width]);
}

/// Writes an integer without leading zeros.
pub(super) fn write_integer(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes the decimal point and a fraction of `places` digits, without trailing zeros. Writes nothing for 0.
pub(super) fn write_trimmed_fraction(out: &mut Vec<u8>, fraction: u64, places: u32) {
    if fraction == 0 {
        return;
    }
    let (mut fraction, mut places) = (fraction, places);
    while fraction % 10 == 0 {
        fraction /= 10;
        places -= 1;
    }
    out.push(b'.');
    write_digits(out, fraction, places as usize);
}

fn last_digit(value: u64) -> u8 {
    b'0' + (value % 10) as u8
}
