//! Report of the skipped tests of a run.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use crate::{Requirement, Skip, take};

const BOLD_YELLOW: &str = "\x1b[1;33m";
const PLAIN: &str = "\x1b[0m";

/// The skipped tests of one run, printed at the end of the output of `cargo test`.
///
/// The text has the format of the standard test harness, and a table of the missing requirements.
#[derive(Debug)]
pub struct Report {
    skips: BTreeSet<Skip>,
    colored: bool,
}

impl Report {
    /// Reads and removes the record of this run, so that the next report does not contain it.
    ///
    /// # Errors
    ///
    /// The record cannot be read or removed.
    pub fn take(colored: bool) -> io::Result<Report> {
        Ok(Report { skips: take()?, colored })
    }

    fn count(&self, requirement: Requirement) -> usize {
        self.skips.iter().filter(|skip| skip.requirement == requirement).count()
    }

    fn write_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end) = if self.colored { (BOLD_YELLOW, PLAIN) } else { ("", "") };
        let (total, noun) = (self.total(), if self.total() == 1 { "TEST" } else { "TESTS" });
        writeln!(
            f,
            "\n{start}{total} {noun} SKIPPED{end}, counted as passed above although nothing was checked:\n"
        )?;
        for requirement in Requirement::ALL {
            let count = self.count(requirement);
            if count > 0 {
                let missing = format!("without {}", requirement.missing());
                writeln!(f, "{start}{count:>5}{end}  {missing:<34} {}", requirement.remedy())?;
            }
        }
        Ok(())
    }

    /// Number of skipped tests. A test that lacks two requirements counts once.
    fn total(&self) -> usize {
        self.skips.iter().map(|skip| (&skip.program, &skip.test)).collect::<BTreeSet<_>>().len()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nskipped tests")?;
        for skip in &self.skips {
            writeln!(f, "test {} {} ... ignored, without {}", skip.program, skip.test, skip.reason())?;
        }
        match self.total() {
            0 => writeln!(f, "\nno test was skipped")?,
            _ => self.write_table(f)?,
        }
        writeln!(
            f,
            "\ntest result: ok. 0 passed; 0 failed; {} ignored; 0 measured; 0 filtered out; finished in 0.00s",
            self.total()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(requirement: Requirement, test: &str, cause: &str) -> Skip {
        Skip { requirement, program: "it".into(), test: test.into(), cause: cause.into() }
    }

    #[test]
    fn a_report_counts_by_requirement_and_names_the_remedy() {
        let skips = BTreeSet::from([
            skip(Requirement::SmallFileSystem, "disk::full", "mount: only root can do that"),
            skip(Requirement::Browser, "pages::accessible", ""),
            skip(Requirement::Browser, "pages::keyboard", ""),
            skip(Requirement::Npm, "pages::accessible", ""),
        ]);
        let text = Report { skips, colored: false }.to_string();
        assert_eq!(
            text,
            "
skipped tests
test it pages::accessible ... ignored, without chromium and chromedriver
test it pages::keyboard ... ignored, without chromium and chromedriver
test it pages::accessible ... ignored, without npm
test it disk::full ... ignored, without a small file system (mount: only root can do that)

3 TESTS SKIPPED, counted as passed above although nothing was checked:

    2  without chromium and chromedriver  apt-get install chromium chromium-driver
    1  without npm                        apt-get install npm
    1  without a small file system        run the tests as root, where mount is allowed

test result: ok. 0 passed; 0 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.00s
"
        );
    }

    #[test]
    fn a_complete_run_says_so() {
        let text = Report { skips: BTreeSet::new(), colored: true }.to_string();
        assert!(text.contains("no test was skipped") && text.contains("0 ignored"), "{text}");
    }
}
