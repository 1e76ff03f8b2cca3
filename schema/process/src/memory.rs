//! What the process takes of the machine's memory.

use std::fs;

/// Bytes of the process that are in memory now; `None` where the system does not say it as Linux does.
pub fn taken() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let of = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: usize = of.trim().strip_suffix(" kB")?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_is_written_to_is_taken() {
        let before = taken().unwrap();
        let written = vec![1u8; 64 << 20];
        assert!(taken().unwrap() > before + (32 << 20), "{} bytes", written.len());
    }
}
