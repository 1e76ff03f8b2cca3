//! Round of a connector: sends all due requests and loads the answers.
//!
//! The order of steps makes a kill safe at any point. Calls are charged, then made. An answer is recorded, then
//! loaded. Its bookmark moves after its rows are in the log, and only then is the answer removed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{TimeDelta, Utc};
use event_log::stream::StreamSettings;
use market::event::Bookmark;
use market::symbol::Symbol;
use reqwest::Url;
use telemetry::failpoint;

use super::ask::{Asked, Asker, Stop};
use super::batch::{Batch, Fetched, Part};
use super::call::Answer;
use super::connector::{Paging, Request};
use super::error::PullError;
use super::paging;
use super::plan::{Missing, Scope, Unit, newest_day};
use super::report::{Failed, Pulled};
use super::wanted::{planned, wanted};
use crate::clock::now;
use crate::load::error::LoadError;
use crate::load::load;
use crate::load::report::FileStatus;

/// Maximum number of pages of one answer.
const MOST_PAGES: usize = 10_000;
/// Number of consecutive failures after which the round stops.
const MOST_FAILURES: u32 = 3;

/// State of a round.
pub(super) struct Round<'a> {
    pub asker: Asker<'a>,
    pub symbols: &'a [Symbol],
    pub settings: &'a StreamSettings,
    /// Folder of the connector.
    pub folder: PathBuf,
    pub pulled: Pulled,
}

/// Result of fetching a unit.
enum Outcome {
    Fetched(Fetched),
    Missing,
    Failed(String),
    /// The vendor's server does not answer.
    Silent(String),
    /// The round stops.
    Stop(Stop),
}

impl Round<'_> {
    /// Runs the round.
    pub(super) async fn run(mut self) -> Result<Pulled, PullError> {
        if let Some(batch) = Batch::left(&self.folder).map_err(|error| self.unusable(error))? {
            self.load(batch).await?;
        }
        let bookmarks = self.asker.ledger.bookmarks().clone();
        let schedule = self.asker.connector.schedule.as_ref().filter(|_| !self.asker.args.once);
        let scope = Scope {
            symbols: self.symbols,
            since: self.asker.args.since,
            today: self.asker.args.today.unwrap_or_else(|| newest_day(Utc::now())),
            bookmarks: &bookmarks,
            fresh_since: schedule.and_then(|schedule| schedule.up_to(Utc::now())),
        };
        for request in wanted(self.asker.args, self.asker.connector)? {
            let units = planned(self.asker.connector, request, &scope)?;
            self.pulled.requests += units.len();
            if self.pulled.stopped.is_some() {
                self.pulled.left += units.len();
            } else {
                self.make(request, &units).await?;
            }
        }
        self.pulled.calls = self.asker.calls;
        Ok(self.pulled)
    }

    /// Sends the requests of one template and loads the answers.
    async fn make(&mut self, request: &Request, units: &[Unit]) -> Result<(), PullError> {
        let mut batch = self.begin(request)?;
        let mut failures = 0;
        for (index, unit) in units.iter().enumerate() {
            let outcome = self.fetch(request, unit, &batch).await?;
            failures = if matches!(outcome, Outcome::Silent(_)) { failures + 1 } else { 0 };
            match outcome {
                Outcome::Fetched(answer) => {
                    batch.add(answer).map_err(|error| self.unusable(error))?;
                    failpoint!("pull.fetched");
                }
                Outcome::Missing => self.pulled.missing += 1,
                Outcome::Failed(reason) | Outcome::Silent(reason) => {
                    self.pulled.failed.push(Failed { what: unit.key.clone(), reason })
                }
                Outcome::Stop(stop) => {
                    self.stop(stop, units.len() - index);
                    break;
                }
            }
            if failures >= MOST_FAILURES && index + 1 < units.len() {
                let reason = format!("{MOST_FAILURES} requests one after another got no answer");
                self.stop(Stop { reason, wait: None }, units.len() - index - 1);
                break;
            }
            if batch.is_full() {
                self.load(batch).await?;
                batch = self.begin(request)?;
            }
        }
        self.load(batch).await
    }

    fn begin(&self, request: &Request) -> Result<Batch, PullError> {
        let mut options = vec!["--observed-at".to_owned(), now().to_rfc3339()];
        if let Some(today) = self.asker.args.today {
            options.extend(["--today".to_owned(), today.to_string()]);
        }
        if request.names("symbol") {
            // The files have their symbols as names.
            options.extend(["--symbol-from".to_owned(), format!("{{symbol}}.{}", request.ending)]);
        }
        Batch::begin(&self.folder, &request.name, options).map_err(|error| self.unusable(error))
    }

    fn stop(&mut self, stop: Stop, left: usize) {
        self.pulled.left += left;
        self.pulled.again_at =
            stop.wait.and_then(|wait| Utc::now().checked_add_signed(TimeDelta::from_std(wait).ok()?));
        self.pulled.stopped = Some(stop.reason);
    }

    /// Fetches all pages of a unit into the batch's folder.
    async fn fetch(&mut self, request: &Request, unit: &Unit, batch: &Batch) -> Result<Outcome, PullError> {
        let (mut url, mut files) = (unit.url.clone(), Vec::new());
        let mut bookmark = Bookmark {
            through: unit.through,
            fetched: now(),
            etag: None,
            last_modified: None,
            content: None,
        };
        let mut first = None;
        for page in 1..=MOST_PAGES {
            let file = batch.page(unit, page).map_err(|error| self.unusable(error))?;
            let path = batch.files(Part::New).join(&file);
            let known = unit.known.as_ref().filter(|_| page == 1);
            let answer = match self.asker.ask(request, &url, known, &path).await? {
                Asked::Answer(answer) => answer,
                Asked::Failed(reason) => return Ok(Outcome::Failed(reason)),
                Asked::Silent(reason) => return Ok(Outcome::Silent(reason)),
                Asked::Stop(stop) => return Ok(Outcome::Stop(stop)),
            };
            match answer {
                Answer::Data { etag, last_modified } if page == 1 => {
                    (bookmark.etag, bookmark.last_modified) = (etag, last_modified);
                }
                Answer::Data { .. } => {}
                Answer::Unchanged => {
                    self.pulled.unchanged += 1;
                    let as_before = unit.known.clone().unwrap_or_else(|| bookmark.clone());
                    let bookmark = Bookmark { through: unit.through, fetched: bookmark.fetched, ..as_before };
                    return Ok(Outcome::Fetched(Fetched::without_rows(unit, bookmark)));
                }
                // A 404 ends numbered pages. A page that the previous one named must exist.
                Answer::Missing if page > 1 && matches!(request.paging, Some(Paging::Number(_))) => break,
                Answer::Missing if page > 1 => {
                    return Ok(Outcome::Failed(format!(
                        "page {page} is not there, though the page before names it"
                    )));
                }
                Answer::Missing => return Ok(self.missing(unit, bookmark)),
                Answer::Elsewhere(to) => {
                    return Ok(Outcome::Failed(format!("leads in circles, to {}", host(&to))));
                }
            }
            let blank = paging::is_blank(&path, first.as_deref(), request.paging.as_ref());
            let blank = blank.map_err(|error| self.unusable(error))?;
            let before = files.last().map(|file| batch.files(Part::New).join(file));
            if let (Some(Paging::Number(parameter)), Some(before), false) = (&request.paging, before, blank)
                && paging::is_again(&path, &before).map_err(|error| self.unusable(error))?
            {
                return Ok(Outcome::Failed(format!(
                    "page {page} is page {} again: the vendor does not page by {parameter}",
                    page - 1
                )));
            }
            let next = request.paging.as_ref().map(|paging| paging::next(paging, &url, page, &path, blank));
            if blank {
                std::fs::remove_file(&path).map_err(|error| self.unusable(error))?;
            } else {
                files.push(file);
                first = first.or(Some(path));
            }
            match next.transpose() {
                Ok(Some(Some(_))) if page == MOST_PAGES => {
                    return Ok(Outcome::Failed(format!("has more than {MOST_PAGES} pages")));
                }
                Ok(Some(Some(next))) => url = next,
                Ok(_) => break,
                Err(reason) => return Ok(Outcome::Failed(format!("page {page} {reason}"))),
            }
        }
        let pages: Vec<PathBuf> = files.iter().map(|file| batch.files(Part::New).join(file)).collect();
        let content = paging::content(pages.iter().map(PathBuf::as_path));
        bookmark.content = Some(content.map_err(|error| self.unusable(error))?);
        let known = unit.known.as_ref().and_then(|known| known.content.as_ref());
        if known == bookmark.content.as_ref() {
            self.pulled.unchanged += 1;
            return Ok(Outcome::Fetched(Fetched::without_rows(unit, bookmark)));
        }
        self.pulled.fetched += 1;
        // An older bookmark may have no content hash. A repeated unit therefore counts as replaced.
        let replaced = unit.known.is_some();
        Ok(Outcome::Fetched(Fetched { files, bookmark, replaced, key: unit.key.clone() }))
    }

    fn missing(&mut self, unit: &Unit, bookmark: Bookmark) -> Outcome {
        match unit.missing {
            Missing::Wrong => Outcome::Failed("the vendor has no such thing (404)".to_owned()),
            Missing::NotYet => Outcome::Missing,
            Missing::Never => {
                self.pulled.missing += 1;
                // The last content hash stays: the vendor may later send the same or an older answer.
                let content = unit.known.as_ref().and_then(|known| known.content.clone());
                let bookmark = Bookmark { content, ..bookmark };
                Outcome::Fetched(Fetched::without_rows(unit, bookmark))
            }
        }
    }

    /// Loads a batch, moves its bookmarks and removes it.
    async fn load(&mut self, batch: Batch) -> Result<(), PullError> {
        if !batch.is_empty() {
            batch.drop_the_unfinished().map_err(|error| self.unusable(error))?;
            let mut refused = BTreeMap::new();
            for part in Part::ALL.into_iter().filter(|part| batch.has_files(*part)) {
                let of_part = self.load_files(&batch, part).await?;
                for (file, reason) in &of_part {
                    let kept = batch.refuse(part, file, reason).map_err(|error| self.unusable(error))?;
                    let what = kept.display().to_string();
                    self.pulled.refused.push(Failed { what, reason: reason.clone() });
                }
                refused.extend(of_part);
            }
            failpoint!("pull.loaded");
            let whole = batch
                .notes
                .answers
                .iter()
                .filter(|answer| !answer.files.iter().any(|file| refused.contains_key(file)));
            self.asker
                .ledger
                .note(whole.map(|answer| (answer.key.clone(), answer.bookmark.clone())).collect())
                .await?;
            failpoint!("pull.noted");
        }
        batch.remove().map_err(|error| self.unusable(error))
    }

    /// Loads the files of a part of a batch. Returns the refused files with their reasons.
    async fn load_files(&mut self, batch: &Batch, part: Part) -> Result<BTreeMap<String, String>, PullError> {
        let folder = batch.files(part);
        let unusable = |error: clap::Error| PullError::Unusable {
            connector: self.asker.connector.name.clone(),
            reason: format!("options of the manifest: {error}"),
        };
        let args = self
            .asker
            .connector
            .load_args(&folder.display().to_string(), &batch.options(part))
            .map_err(unusable)?;
        let answers = || batch.notes.answers.iter().filter(|answer| answer.part() == part);
        let files = || answers().flat_map(|answer| &answer.files);
        let summary = match load(&args, self.settings, self.asker.shutdown).await {
            Ok(summary) => summary,
            Err(error @ (LoadError::Log(_) | LoadError::Publish(_) | LoadError::Interrupted)) => {
                return Err(error.into());
            }
            Err(error) => return Ok(files().map(|file| (file.clone(), error.to_string())).collect()),
        };
        self.pulled.add(&summary);
        let refused = summary.files.iter().filter(|file| file.status == FileStatus::Refused);
        let reasons = refused.map(|file| (&file.file, file.reason.clone().unwrap_or_default()));
        let reasons: Vec<_> = reasons
            .chain(summary.skipped.iter().map(|file| (file, "is no feed by its name".to_owned())))
            .collect();
        let reason = |file: &String| reasons.iter().find(|(label, _)| label.starts_with(file.as_str()));
        Ok(files().filter_map(|file| Some((file.clone(), reason(file)?.1.clone()))).collect())
    }

    fn unusable(&self, source: std::io::Error) -> PullError {
        PullError::Folder { path: self.folder.clone(), source }
    }
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}
