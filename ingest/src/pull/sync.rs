//! Sync run of a connector: sends all due requests and loads the responses.
//!
//! A kill is harmless at any time. Responses are recorded on disk before they are loaded. Bookmarks advance after the
//! rows are in the log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use event_log::stream::StreamSettings;
use market::event::Bookmark;
use market::symbol::Symbol;
use telemetry::{failpoint, shorten};

use super::args::PullError;
use super::batch::{BatchPart, FetchedResponse, ResponseBatch};
use super::client::{RequestError, VendorClient};
use super::connector::{PagingMethod, RequestTemplate};
use super::http_client::VendorResponse;
use super::paging;
use super::plan::{NotFoundMeaning, PlannedRequest, SyncScope, newest_day, plan_requests, select_templates};
use super::report::{FailedItem, MAX_REASON_CHARS, PullReport};
use crate::load::load;
use crate::load::publication::LoadError;
use crate::log::publisher::now;
use crate::source::file_access::FolderHandle;

/// Maximum number of pages of one response.
const MAX_PAGES: usize = 10_000;
/// The sync run stops after this number of consecutive requests without a response.
const MAX_CONSECUTIVE_FAILURES: u32 = 3;

/// Sync run of a connector, with its inputs and its report.
pub(super) struct SyncRun<'a> {
    pub client: VendorClient<'a>,
    pub symbols: &'a [Symbol],
    pub settings: &'a StreamSettings,
    /// Folder for the fetched responses of the connector.
    pub folder: Arc<FolderHandle>,
    pub pulled: PullReport,
}

impl SyncRun<'_> {
    /// Loads the responses that an interrupted pull left on disk, and then sends all due requests.
    pub(super) async fn run(mut self) -> Result<PullReport, PullError> {
        if let Some(batch) = ResponseBatch::open_unfinished(&self.folder).map_err(self.in_folder())? {
            self.load_batch(batch).await?;
        }
        let bookmarks = self.client.state_log.bookmarks.clone();
        let schedule = self.client.http.connector.schedule.as_ref().filter(|_| !self.client.http.args.once);
        let scope = SyncScope {
            symbols: self.symbols,
            since: self.client.http.args.since,
            today: self.client.http.args.today.unwrap_or_else(|| newest_day(Utc::now())),
            bookmarks: &bookmarks,
            fresh_since: schedule.and_then(|schedule| schedule.last_until(Utc::now())),
        };
        for template in select_templates(self.client.http.args, self.client.http.connector)? {
            let requests = plan_requests(self.client.http.connector, template, &scope)?;
            self.pulled.requests += requests.len();
            if self.pulled.stopped.is_some() {
                self.pulled.left += requests.len();
            } else {
                self.send_requests(template, &requests).await?;
            }
        }
        self.pulled.calls = self.client.calls;
        Ok(self.pulled)
    }

    /// Sends the requests of one template, and loads the responses.
    async fn send_requests(
        &mut self,
        template: &RequestTemplate,
        requests: &[PlannedRequest],
    ) -> Result<(), PullError> {
        let mut batch = self.create_batch(template)?;
        let mut failures = 0;
        for (index, request) in requests.iter().enumerate() {
            let fetched = self.fetch_response(template, request, &batch).await;
            failures = if matches!(fetched, Err(RequestError::NoResponse(_))) { failures + 1 } else { 0 };
            match fetched {
                Ok(Some(response)) => {
                    batch.record_response(response).map_err(self.in_folder())?;
                    failpoint!("pull.fetched");
                }
                Ok(None) => self.pulled.missing += 1,
                Err(RequestError::Failed(reason) | RequestError::NoResponse(reason)) => {
                    self.pulled.failed.push(FailedItem::new(request.key.clone(), &reason))
                }
                Err(RequestError::Stop { reason, wait }) => {
                    self.stop_early(reason, wait, requests.len() - index);
                    break;
                }
                Err(RequestError::Pull(error)) => return Err(error),
            }
            if failures >= MAX_CONSECUTIVE_FAILURES && index + 1 < requests.len() {
                let reason = format!("{MAX_CONSECUTIVE_FAILURES} consecutive requests got no answer");
                self.stop_early(reason, None, requests.len() - index - 1);
                break;
            }
            if batch.is_full() {
                self.load_batch(batch).await?;
                batch = self.create_batch(template)?;
            }
        }
        self.load_batch(batch).await
    }

    fn create_batch(&self, template: &RequestTemplate) -> Result<ResponseBatch, PullError> {
        let mut options = vec!["--observed-at".to_owned(), now().to_rfc3339()];
        if let Some(today) = self.client.http.args.today {
            options.extend(["--today".to_owned(), today.to_string()]);
        }
        if template.has_placeholder("symbol") {
            // The symbol of each file is in the file name.
            options.extend(["--symbol-from".to_owned(), format!("{{symbol}}.{}", template.ending)]);
        }
        ResponseBatch::create(&self.folder, &template.name, options).map_err(self.in_folder())
    }

    fn stop_early(&mut self, reason: String, wait: Option<Duration>, left: usize) {
        self.pulled.left += left;
        self.pulled.again_at =
            wait.and_then(|wait| Utc::now().checked_add_signed(TimeDelta::from_std(wait).ok()?));
        self.pulled.stopped = Some(shorten(&reason, MAX_REASON_CHARS));
    }

    /// Fetches all pages of a response into the folder of the batch. Returns `None` if the vendor does not have the
    /// data yet.
    async fn fetch_response(
        &mut self,
        template: &RequestTemplate,
        request: &PlannedRequest,
        batch: &ResponseBatch,
    ) -> Result<Option<FetchedResponse>, RequestError> {
        let mut url = request.url.clone();
        // Files of the pages that contain records: names relative to the batch's folder, and paths for reading.
        let (mut files, mut paths) = (Vec::new(), Vec::<PathBuf>::new());
        let mut bookmark = Bookmark {
            through: request.through,
            fetched: now(),
            etag: None,
            last_modified: None,
            content: None,
        };
        for page in 1..=MAX_PAGES {
            let target = batch.create_page(request, page).map_err(self.in_folder())?;
            let known = request.known.as_ref().filter(|_| page == 1);
            match self.client.request_page(template, &url, known, &target).await? {
                VendorResponse::Data { etag, last_modified } if page == 1 => {
                    (bookmark.etag, bookmark.last_modified) = (etag, last_modified);
                }
                VendorResponse::Data { .. } => {}
                VendorResponse::NotModified => {
                    self.pulled.unchanged += 1;
                    let as_before = request.known.clone().unwrap_or_else(|| bookmark.clone());
                    let bookmark =
                        Bookmark { through: request.through, fetched: bookmark.fetched, ..as_before };
                    return Ok(Some(FetchedResponse::without_rows(request, bookmark)));
                }
                // If the paging counts page numbers, a 404 response means the end. Otherwise, the previous page refers
                // to this page, so a 404 response is an error.
                VendorResponse::NotFound
                    if page > 1 && matches!(template.paging, Some(PagingMethod::Number(_))) =>
                {
                    break;
                }
                VendorResponse::NotFound if page > 1 => {
                    let reason = format!("page {page} does not exist, although the previous page names it");
                    return Err(RequestError::Failed(reason));
                }
                VendorResponse::NotFound => return self.handle_not_found(request, bookmark),
                VendorResponse::Redirect(to) => {
                    let host = to.host_str().unwrap_or_default();
                    return Err(RequestError::Failed(format!("too many redirects, the last one to {host}")));
                }
            }
            let path = target.path;
            let first = paths.first().map(PathBuf::as_path);
            let is_empty = paging::has_no_records(&path, first, template.paging.as_ref());
            let is_empty = is_empty.map_err(self.in_folder())?;
            if let (Some(PagingMethod::Number(parameter)), Some(before)) = (&template.paging, paths.last())
                && !is_empty
                && paging::is_repeated_page(&path, before).map_err(self.in_folder())?
            {
                return Err(RequestError::Failed(format!(
                    "page {page} equals page {}: the vendor ignores the parameter {parameter}",
                    page - 1
                )));
            }
            let next = match &template.paging {
                Some(paging) => paging::next_page_url(paging, &url, page, &path, is_empty)
                    .map_err(|reason| RequestError::Failed(format!("page {page} {reason}")))?,
                None => None,
            };
            if is_empty {
                std::fs::remove_file(&path).map_err(self.in_folder())?;
            } else {
                files.push(target.relative);
                paths.push(path);
            }
            let Some(next) = next else { break };
            if page == MAX_PAGES {
                return Err(RequestError::Failed(format!("has more than {MAX_PAGES} pages")));
            }
            url = next;
        }
        let content = paging::content_hash(paths.iter().map(PathBuf::as_path));
        bookmark.content = Some(content.map_err(self.in_folder())?);
        let known = request.known.as_ref().and_then(|known| known.content.as_ref());
        if known == bookmark.content.as_ref() {
            self.pulled.unchanged += 1;
            return Ok(Some(FetchedResponse::without_rows(request, bookmark)));
        }
        self.pulled.fetched += 1;
        // A bookmark means that the request had an earlier response, which this response replaces. The bookmark may
        // lack a content hash; the earlier response is replaced even then.
        let replaced = request.known.is_some();
        Ok(Some(FetchedResponse { files, bookmark, replaced, key: request.key.clone() }))
    }

    fn handle_not_found(
        &mut self,
        request: &PlannedRequest,
        bookmark: Bookmark,
    ) -> Result<Option<FetchedResponse>, RequestError> {
        match request.not_found {
            NotFoundMeaning::Wrong => {
                Err(RequestError::Failed("the vendor does not have it (404)".to_owned()))
            }
            NotFoundMeaning::NotYet => Ok(None),
            NotFoundMeaning::Never => {
                self.pulled.missing += 1;
                // The new bookmark takes over the content hash of the previous bookmark. The next response with data is
                // compared with this hash.
                let content = request.known.as_ref().and_then(|known| known.content.clone());
                let bookmark = Bookmark { content, ..bookmark };
                Ok(Some(FetchedResponse::without_rows(request, bookmark)))
            }
        }
    }

    /// Loads the responses of a batch, and removes the batch. Advances the bookmark of each request, unless a file of
    /// its response was refused.
    async fn load_batch(&mut self, batch: ResponseBatch) -> Result<(), PullError> {
        if !batch.is_empty() {
            batch.remove_unrecorded_pages().map_err(self.in_folder())?;
            let mut refused = BTreeMap::new();
            for part in BatchPart::ALL.into_iter().filter(|part| batch.has_files(*part)) {
                let refused_files = self.load_files(&batch, part).await?;
                for (file, reason) in &refused_files {
                    let copy = batch.keep_refused_file(part, file, reason).map_err(self.in_folder())?;
                    let what = copy.display().to_string();
                    self.pulled.refused.push(FailedItem::new(what, reason));
                }
                refused.extend(refused_files);
            }
            failpoint!("pull.loaded");
            let is_complete =
                |response: &&FetchedResponse| !response.files.iter().any(|file| refused.contains_key(file));
            let complete = batch.notes.responses.iter().filter(is_complete);
            let bookmarks = complete.map(|response| (response.key.clone(), response.bookmark.clone()));
            self.client.state_log.record_bookmarks(bookmarks.collect()).await?;
            failpoint!("pull.noted");
        }
        batch.remove().map_err(self.in_folder())
    }

    /// Loads one part of a batch: either new responses, or responses that replace earlier ones. Returns the paths of
    /// the refused files, with the reasons.
    async fn load_files(
        &mut self,
        batch: &ResponseBatch,
        part: BatchPart,
    ) -> Result<BTreeMap<String, String>, PullError> {
        let folder = batch.files_folder(part);
        let connector = self.client.http.connector;
        let args = connector.load_args(&folder.display().to_string(), &batch.load_options(part));
        let mut args =
            args.map_err(|error| connector.unusable(format!("options of the manifest: {error}")))?;
        let opened = batch.open_files_folder(part).map_err(self.in_folder())?;
        args.gate |= self.client.http.args.gate;
        args.fetched_from = connector.dataset(&batch.notes.request);
        (args.paths, args.folder) = (vec![folder], Some(Arc::new(opened)));
        let responses = batch.notes.responses.iter().filter(|response| response.part() == part);
        let files = responses.flat_map(|response| &response.files);
        let summary = match load(&args, self.settings, self.client.shutdown).await {
            Ok(summary) => summary,
            Err(error @ (LoadError::Log(_) | LoadError::Publish(_) | LoadError::Interrupted)) => {
                return Err(error.into());
            }
            Err(error) => return Ok(files.map(|file| (file.clone(), error.to_string())).collect()),
        };
        self.pulled.add_load(&summary);
        let reasons =
            summary.files.refused().map(|file| (&file.file, file.reason.clone().unwrap_or_default()));
        let reasons: Vec<_> = reasons
            .chain(summary.skipped.iter().map(|file| (file, "its name is not a feed name".to_owned())))
            .collect();
        let reason = |file: &String| reasons.iter().find(|(label, _)| label.starts_with(file.as_str()));
        Ok(files.filter_map(|file| Some((file.clone(), reason(file)?.1.clone()))).collect())
    }

    fn in_folder(&self) -> impl Fn(std::io::Error) -> PullError + use<> {
        let path = self.folder.path().to_owned();
        move |source| PullError::Folder { path: path.clone(), source }
    }
}
