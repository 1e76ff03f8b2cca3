use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;
use clap::Parser;
use synthetic_market::{GenerateArgs, generate};

/// Writes a synthetic market to a folder. The options are those of `stack generate`, divided by spaces.
pub fn generate_market(folder: impl AsRef<Path>, options: &str) -> Result<()> {
    let mut arguments: Vec<&OsStr> = vec!["generate".as_ref()];
    arguments.extend(options.split(' ').map(OsStr::new));
    arguments.extend(["--out".as_ref(), folder.as_ref().as_os_str()]);
    generate(&GenerateArgs::try_parse_from(arguments)?)?;
    Ok(())
}
