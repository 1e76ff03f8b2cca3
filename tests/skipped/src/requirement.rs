//! Optional requirements of tests.

/// Something that some tests need and a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    /// Files of real vendors, next to the workspace.
    SampleData,
    /// Published worked cases of the domain rules, next to the workspace.
    WorkedCases,
    /// Chromium and its WebDriver.
    Browser,
    /// npm, which fetches the accessibility rules of the browser tests.
    Npm,
    /// The command-line HTTP client, which runs the calls that the dashboard shows.
    Curl,
    /// The command-line client of Postgres, which runs the statements of the documentation.
    Psql,
    /// The command-line tool that makes certificates.
    OpenSsl,
    /// The right to mount a file system of some megabytes.
    SmallFileSystem,
    /// strace and the right to trace processes.
    Strace,
    /// moto, an object store with the protocol of S3.
    ObjectStore,
}

impl Requirement {
    /// Every requirement, in the order of the report.
    pub const ALL: [Requirement; 10] = [
        Requirement::SampleData,
        Requirement::WorkedCases,
        Requirement::Browser,
        Requirement::Npm,
        Requirement::Curl,
        Requirement::Psql,
        Requirement::OpenSsl,
        Requirement::SmallFileSystem,
        Requirement::Strace,
        Requirement::ObjectStore,
    ];

    /// The requirement as a noun phrase that follows "without".
    pub fn missing(self) -> &'static str {
        match self {
            Requirement::SampleData => "sample data",
            Requirement::WorkedCases => "worked cases",
            Requirement::Browser => "chromium and chromedriver",
            Requirement::Npm => "npm",
            Requirement::Curl => "curl",
            Requirement::Psql => "psql",
            Requirement::OpenSsl => "openssl",
            Requirement::SmallFileSystem => "a small file system",
            Requirement::Strace => "a record of system calls",
            Requirement::ObjectStore => "an object store",
        }
    }

    /// The action that lets the tests run.
    pub fn remedy(self) -> &'static str {
        match self {
            Requirement::SampleData => "place the vendors' files at ../shared/samples",
            Requirement::WorkedCases => "place the cases at ../shared/golden/domain-cases.json",
            Requirement::Browser => "apt-get install chromium chromium-driver",
            Requirement::Npm => "apt-get install npm",
            Requirement::Curl => "apt-get install curl",
            Requirement::Psql => "apt-get install postgresql-client",
            Requirement::OpenSsl => "apt-get install openssl",
            Requirement::SmallFileSystem => "run the tests as root, where mount is allowed",
            Requirement::Strace => "apt-get install strace, and allow ptrace",
            Requirement::ObjectStore => "pip install 'moto[server]'",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Requirement> {
        Requirement::ALL.into_iter().find(|requirement| format!("{requirement:?}") == name)
    }
}
