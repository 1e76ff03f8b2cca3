//! Download of a pinned archive over HTTP, which continues after an interruption.
//!
//! Received bytes are in a `.part` file. It gets its final name only after its SHA-256 was checked.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use reqwest::header::{ACCEPT, CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode, Url};

use super::{announce, bars, sha256};
use crate::root_certificates;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of consecutive failed attempts after which the download fails. After an attempt that received bytes, the
/// count begins again with this attempt.
const MAX_ATTEMPTS: u32 = 4;
/// Pause before the second attempt. The pause doubles with every further attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const BAR: &str = "  {msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}";

/// File of a public registry, pinned by its checksum.
#[derive(Debug, Clone)]
pub struct Archive {
    /// Name of the file in the registry.
    pub file: String,
    /// Length of the file, in bytes.
    pub size_bytes: u64,
    /// SHA-256 in lower-case hexadecimal digits.
    pub sha256: String,
    /// Address of the file.
    pub source: Source,
}

/// Address of a file in a registry.
#[derive(Debug, Clone)]
pub enum Source {
    /// URL of the file itself.
    File(Url),
    /// URL of a project's page in a Python package index (PEP 503 or PEP 691), which links to the file.
    IndexPage(Url),
}

enum Failure {
    Transient(anyhow::Error),
    Permanent(anyhow::Error),
}

impl Archive {
    pub(super) fn host(&self) -> &str {
        let (Source::File(url) | Source::IndexPage(url)) = &self.source;
        url.host_str().unwrap_or_default()
    }
}

/// Downloads an archive into `folder`, checks its SHA-256, and returns its path. If `folder` already contains the
/// archive with the correct SHA-256, downloads nothing.
pub(super) async fn download(archive: &Archive, folder: &Path) -> Result<PathBuf> {
    let whole = folder.join(&archive.file);
    if whole.is_file() {
        if sha256(&whole)? == archive.sha256 {
            return Ok(whole);
        }
        announce(format_args!("{} is not the pinned file; fetching it again", whole.display()));
        fs::remove_file(&whole)?;
    }
    let part = folder.join(format!("{}.part", archive.file));
    let client = client()?;
    let url = archive.locate(&client).await?;
    let resumed = length(&part) > 0;
    receive(&client, &url, archive, &part).await?;
    if resumed && sha256(&part)? != archive.sha256 {
        // An earlier run may have left a `.part` file with other content. Download the whole file once more.
        fs::remove_file(&part)?;
        receive(&client, &url, archive, &part).await?;
    }
    let found = sha256(&part)?;
    if found != archive.sha256 {
        fs::remove_file(&part)?;
        bail!("cannot use {url}: its SHA-256 is {found}, and {} is pinned", archive.sha256);
    }
    fs::rename(&part, &whole).with_context(|| format!("cannot create {}", whole.display()))?;
    Ok(whole)
}

fn client() -> Result<Client> {
    let client = Client::builder()
        .tls_backend_preconfigured(root_certificates::tls_configuration()?)
        .user_agent(concat!("dividend-data-service/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .build();
    client.context("cannot set up the HTTP client")
}

impl Archive {
    /// URL of the file. If the source is an index page, the URL is a link on that page.
    async fn locate(&self, client: &Client) -> Result<Url> {
        let page = match &self.source {
            Source::File(url) => return Ok(url.clone()),
            Source::IndexPage(url) => url,
        };
        let request = client.get(page.clone()).header(ACCEPT, "text/html, */*;q=0.1");
        let response = request.send().await.and_then(Response::error_for_status);
        let text = response.with_context(|| format!("cannot read {page}"))?.text().await?;
        let link = find_link(&text, &self.file).with_context(|| format!("{page} has no {}", self.file))?;
        let mut url = page.join(link).with_context(|| format!("{page} has an unusable link {link}"))?;
        url.set_fragment(None);
        Ok(url)
    }
}

/// Returns the link to a file on the page of a package index. The link is the first quoted string whose path ends with
/// the name of the file.
fn find_link<'a>(page: &'a str, file: &str) -> Option<&'a str> {
    page.split(['"', '\'']).find(|text| {
        let path = text.split(['#', '?']).next().unwrap_or_default();
        path.rsplit('/').next() == Some(file)
    })
}

/// Appends the missing bytes to the file `part`, with retries and a progress bar.
async fn receive(client: &Client, url: &Url, archive: &Archive, part: &Path) -> Result<()> {
    let style = ProgressStyle::with_template(BAR).context("cannot draw a progress bar")?;
    let bar = bars().add(ProgressBar::new(archive.size_bytes).with_style(style));
    bar.set_message(url.host_str().unwrap_or_default().to_owned());
    let received = receive_with_retries(client, url, archive, part, &bar).await;
    bar.finish_and_clear();
    received.with_context(|| format!("cannot download {url}"))
}

async fn receive_with_retries(
    client: &Client,
    url: &Url,
    archive: &Archive,
    part: &Path,
    bar: &ProgressBar,
) -> Result<()> {
    let mut pause = FIRST_PAUSE;
    let mut attempt = 1;
    loop {
        let before = length(part);
        let error = match receive_once(client, url, archive, part, bar).await {
            Ok(()) => return Ok(()),
            Err(Failure::Permanent(error)) => return Err(error),
            Err(Failure::Transient(error)) => error,
        };
        if length(part) > before {
            (pause, attempt) = (FIRST_PAUSE, 1);
        }
        if attempt == MAX_ATTEMPTS {
            return Err(error);
        }
        announce(format_args!(
            "  download of {} interrupted at {} ({error:#}); trying again",
            archive.file,
            HumanBytes(length(part))
        ));
        tokio::time::sleep(pause).await;
        pause *= 2;
        attempt += 1;
    }
}

async fn receive_once(
    client: &Client,
    url: &Url,
    archive: &Archive,
    part: &Path,
    bar: &ProgressBar,
) -> Result<(), Failure> {
    let mut received = length(part);
    if received == archive.size_bytes {
        return Ok(());
    }
    let mut request = client.get(url.clone());
    if received > 0 {
        request = request.header(RANGE, format!("bytes={received}-"));
    }
    let mut response = request.send().await?;
    let mut file = match response.status() {
        StatusCode::PARTIAL_CONTENT if starts_at(&response, received) => {
            File::options().append(true).open(part)?
        }
        StatusCode::OK => {
            received = 0;
            File::create(part)?
        }
        StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
            fs::remove_file(part)?;
            return Err(Failure::Transient(anyhow!("the server has no such range")));
        }
        status if is_transient(status) => return Err(Failure::Transient(anyhow!("HTTP status {status}"))),
        status => return Err(Failure::Permanent(anyhow!("HTTP status {status}"))),
    };
    let offered = response.content_length().map(|rest| received + rest);
    refuse_other_size(offered.filter(|offered| *offered != archive.size_bytes), archive)?;
    bar.set_position(received);
    while let Some(chunk) = response.chunk().await? {
        received += chunk.len() as u64;
        refuse_other_size(Some(received).filter(|received| *received > archive.size_bytes), archive)?;
        file.write_all(&chunk)?;
        bar.inc(chunk.len() as u64);
    }
    if received < archive.size_bytes {
        return Err(Failure::Transient(anyhow!("the server closed the connection")));
    }
    file.sync_all()?;
    Ok(())
}

fn refuse_other_size(size_bytes: Option<u64>, archive: &Archive) -> Result<(), Failure> {
    let Some(size_bytes) = size_bytes else { return Ok(()) };
    Err(Failure::Permanent(anyhow!(
        "the server sends {size_bytes} bytes, and {} bytes are pinned",
        archive.size_bytes
    )))
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}

fn starts_at(response: &Response, byte: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {byte}-")))
}

fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}

impl From<reqwest::Error> for Failure {
    fn from(error: reqwest::Error) -> Failure {
        // The caller adds the URL to the message.
        let error = error.without_url();
        if is_tls(&error) { Failure::Permanent(error.into()) } else { Failure::Transient(error.into()) }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Permanent(anyhow::Error::new(error).context("cannot write the file"))
    }
}

/// True if TLS caused the error, for example because a certificate is not trusted. A retry would then fail too.
fn is_tls(error: &(dyn Error + 'static)) -> bool {
    let own = error.is::<rustls::Error>();
    let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    own || wrapped.is_some_and(|inner| is_tls(inner)) || error.source().is_some_and(is_tls)
}
