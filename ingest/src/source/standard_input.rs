//! `ingest load -`: standard input as a feed file.
//!
//! A load reads every file twice: first to compute its hash, then to load the rows. Standard input is therefore copied
//! to a temporary file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use market::event::Kind;
use telemetry::Shutdown;
use tempfile::TempPath;
use tokio::sync::oneshot;

const STANDARD_INPUT: &str = "-";

/// True if a path of the command line is standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

/// Copy of standard input in a temporary file. `label` is the file name that messages and the log show for the copy.
/// The copy is deleted on drop.
#[derive(Debug)]
pub(crate) struct StandardInput {
    pub path: TempPath,
    pub label: String,
}

impl StandardInput {
    /// Copies standard input up to its end. The label of the copy is `name`. If `name` is `None`, the label is made
    /// from `kind` and the detected encoding, for example `price.csv`. Returns `None` after a shutdown.
    pub(crate) async fn copy_to_file(
        name: Option<&str>,
        kind: Option<Kind>,
        shutdown: &Shutdown,
    ) -> io::Result<Option<Self>> {
        let (sender, receiver) = oneshot::channel();
        // The copy runs on its own thread. If it were a task of the runtime, the shutdown would wait for input.
        std::thread::spawn(move || sender.send(copy(io::stdin().lock())));
        let Some(copied) = shutdown.or_stop(receiver).await else { return Ok(None) };
        let copied = copied.map_err(io::Error::other).and_then(|copied| copied);
        let not_stored =
            |error: io::Error| io::Error::new(error.kind(), format!("cannot store standard input: {error}"));
        let path = copied.map_err(not_stored)?;
        let mut input = Self { path, label: String::new() };
        input.label = match name {
            Some(name) => name.to_owned(),
            None => input.label_of(kind)?,
        };
        Ok(Some(input))
    }

    /// File name from the kind and the detected encoding, for example `price.csv`.
    fn label_of(&self, kind: Option<Kind>) -> io::Result<String> {
        let mut head = Vec::new();
        File::open(&self.path)?.take(4096).read_to_end(&mut head)?;
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
        let ending = match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => "ndjson",
            Some(b'[') => "json",
            _ => "csv",
        };
        Ok(format!("{}.{ending}", kind.map_or("standard-input", Kind::as_str)))
    }
}

fn copy(mut input: impl Read) -> io::Result<TempPath> {
    let mut file = tempfile::Builder::new().prefix("ingest-").suffix(".input").tempfile()?;
    io::copy(&mut input, &mut file)?;
    Ok(file.into_temp_path())
}
