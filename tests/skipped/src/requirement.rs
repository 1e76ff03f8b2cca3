//! Requirements of tests that a machine may lack, such as a browser. A test without its requirement is skipped.

/// Something that some tests need and a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    /// Sample files of real vendors, in a folder next to the workspace.
    SampleData,
    /// A file with examples of the domain rules (input and correct result), next to the workspace.
    WorkedCases,
    /// Chromium and its WebDriver.
    Browser,
    /// npm, which fetches the accessibility rules of the browser tests.
    Npm,
    /// curl, the command-line HTTP client. It runs the example calls that the dashboard shows.
    Curl,
    /// psql, the command-line client of Postgres. It runs the SQL statements in the documentation.
    Psql,
    /// openssl, the command-line tool that creates certificates.
    OpenSsl,
    /// The right to mount a file system of some megabytes.
    SmallFileSystem,
    /// strace and the right to trace processes.
    Strace,
    /// moto, a local server that emulates the object store S3, and modules of Python that read its files.
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

    /// Returns the noun phrase that the report of skipped tests prints after `without`, for example `sample data`.
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

    /// Returns the action that provides the requirement, for example `apt-get install npm`.
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
            Requirement::ObjectStore => {
                "pip install 'moto[server]' duckdb 'psycopg[binary]' './api/clients/python[files]'"
            }
        }
    }

    pub(crate) fn named(name: &str) -> Option<Requirement> {
        Requirement::ALL.into_iter().find(|requirement| format!("{requirement:?}") == name)
    }
}
