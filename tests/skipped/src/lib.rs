//! Record of skipped tests, shared by the test programs of one `cargo test`.
//!
//! A test that lacks a [`Requirement`] calls [`record`] and returns. The test program `report` prints the record at the
//! end.
//!
//! Invariant: a report covers one run of Cargo, because the parent process determines the name of the record's file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};

mod report;
mod requirement;

pub use report::Report;
pub use requirement::Requirement;

const FOLDER: &str = "skipped-tests";
const SEPARATOR: char = '\t';

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Skip {
    pub(crate) requirement: Requirement,
    pub(crate) program: String,
    pub(crate) test: String,
    pub(crate) cause: String,
}

/// Records that the calling test is skipped, and prints this on standard error. `cause` is an error message about the
/// missing requirement, or empty.
#[track_caller]
pub fn record(requirement: Requirement, cause: &str) {
    let skip = Skip { requirement, program: program_name(), test: test_name(), cause: one_line(cause) };
    eprintln!("skipped without {}: {}", skip.reason(), requirement.remedy());
    let written = record_file().and_then(|file| append(&file, &skip));
    if let Err(error) = written {
        panic!("cannot record the skipped test {}: {error}", skip.test);
    }
}

impl Skip {
    fn reason(&self) -> String {
        let missing = self.requirement.missing();
        if self.cause.is_empty() { missing.to_owned() } else { format!("{missing} ({})", self.cause) }
    }

    fn to_line(&self) -> String {
        let requirement = format!("{:?}", self.requirement);
        [&requirement, &self.program, &self.test, &self.cause].map(String::as_str).join("\t")
    }

    fn from_line(line: &str) -> Option<Skip> {
        let mut fields = line.split(SEPARATOR);
        let mut field = || fields.next();
        let requirement = Requirement::named(field()?)?;
        let (program, test, cause) = (field()?.to_owned(), field()?.to_owned(), field()?.to_owned());
        Some(Skip { requirement, program, test, cause })
    }
}

/// Returns the skipped tests of this run. Removes the record of this run, and the records of all runs that have ended.
pub(crate) fn take() -> io::Result<BTreeSet<Skip>> {
    let file = record_file()?;
    let skips = read(&file)?;
    for entry in fs::read_dir(file.parent().unwrap_or(&file))? {
        let path = entry?.path();
        if path == file || !is_of_running_process(&path) {
            fs::remove_file(path)?;
        }
    }
    Ok(skips)
}

fn read(file: &Path) -> io::Result<BTreeSet<Skip>> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    let parse = |line: &str| {
        Skip::from_line(line).ok_or_else(|| io::Error::other(format!("cannot read the record {line:?}")))
    };
    text.lines().map(parse).collect()
}

/// Appends a line with a single write call, so that the lines of parallel tests do not mix.
fn append(file: &Path, skip: &Skip) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(file)?;
    file.write_all(format!("{}\n", skip.to_line()).as_bytes())
}

/// Returns `target/debug/skipped-tests/<parent>` for a test program in `target/debug/deps`. `<parent>` identifies the
/// process that started the test program.
fn record_file() -> io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let profile = program.ancestors().nth(2).ok_or_else(|| io::Error::other("the program has no folder"))?;
    let folder = profile.join(FOLDER);
    fs::create_dir_all(&folder)?;
    Ok(folder.join(identify(parent_id())))
}

/// Identifies a process by its id and its start time, because ids are reused.
fn identify(process: u32) -> String {
    format!("{process}-{}", start_time(process).unwrap_or_default())
}

/// Start time in clock ticks since boot: field 22 of `/proc/<pid>/stat`, the twentieth field after the program's name.
fn start_time(process: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19).map(str::to_owned)
}

fn is_of_running_process(record: &Path) -> bool {
    let name = record.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let process = name.split('-').next().and_then(|process| process.parse().ok());
    process.is_some_and(|process| start_time(process).is_some() && identify(process) == name)
}

/// Name of the test program, without the hash that Cargo appends.
fn program_name() -> String {
    let program = std::env::current_exe().ok();
    let stem = program.as_deref().and_then(Path::file_stem).map(|stem| stem.to_string_lossy().into_owned());
    let stem = stem.unwrap_or_default();
    stem.rsplit_once('-').map_or(stem.as_str(), |(name, _)| name).to_owned()
}

/// Name of the test, which is also the name of its thread. With `--test-threads=1`, all tests run on the main thread.
/// The source location of the call is then used as the name.
#[track_caller]
fn test_name() -> String {
    match std::thread::current().name() {
        None | Some("main") => std::panic::Location::caller().to_string(),
        Some(name) => name.to_owned(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_read_as_it_was_written() {
        let cause = one_line("mount: only root\tcan\ndo that ");
        let skip = Skip {
            requirement: Requirement::SmallFileSystem,
            program: "it".into(),
            test: "disk::full".into(),
            cause,
        };
        assert_eq!(skip.cause, "mount: only root can do that");
        assert_eq!(Skip::from_line(&skip.to_line()), Some(skip));
        assert_eq!(Skip::from_line("Nothing\tit\tname\t"), None);
    }

    #[test]
    fn a_test_is_recorded_once_by_its_name() {
        let file = std::env::temp_dir().join(format!("skips-{}", std::process::id()));
        let skip = |test: &str| Skip {
            requirement: Requirement::Browser,
            program: program_name(),
            test: test.into(),
            cause: String::new(),
        };
        let own = test_name();
        for test in [&own, &own, "tests::other"] {
            append(&file, &skip(test)).expect("the record is written");
        }
        let found = read(&file).expect("the record is read");
        fs::remove_file(&file).expect("the record is there");
        let names: Vec<&str> = found.iter().map(|skip| skip.test.as_str()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        assert!(names.contains(&"tests::other"));
        assert!(read(&file).expect("no record, no skips").is_empty());
    }

    #[test]
    fn records_of_ended_processes_are_known() {
        let own = std::process::id();
        assert!(is_of_running_process(Path::new(&identify(own))));
        assert!(!is_of_running_process(Path::new(&format!("{own}-1"))));
        assert!(!is_of_running_process(Path::new("unknown")));
    }
}
