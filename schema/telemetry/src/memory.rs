//! Resident memory of the process.

use std::fs;

/// Resident set size in bytes, from `/proc`; `None` on a system without `/proc`.
pub fn resident_bytes() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: usize = rss.trim().strip_suffix(" kB")?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_written_to_is_taken() {
        let before = resident_bytes().unwrap();
        let written = vec![1u8; 64 << 20];
        assert!(resident_bytes().unwrap() > before + (32 << 20), "{} bytes", written.len());
    }
}
