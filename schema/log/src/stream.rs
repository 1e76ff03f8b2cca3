//! JetStream stream of the log: names, configuration and connection. The stream is append-only, uncompressed, and
//! without limits of age or size. Each kind of rows has its own subject.
//!
//! Replicas of the stream that lack messages or do not report their state.

use std::fmt;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::context::{
    CreateStreamError, CreateStreamErrorKind, GetStreamError, GetStreamErrorKind,
};
use async_nats::jetstream::stream::Info;
use async_nats::jetstream::{ErrorCode, stream};
use backon::{ConstantBuilder, Retryable};
use clap::Args;
use market::event::Kind;
use serde::Serialize;

/// Settings of the log: NATS server and JetStream stream.
#[derive(Debug, Clone, Args)]
pub struct StreamSettings {
    /// URL of the NATS server, or several URLs separated by commas
    #[arg(
        long,
        env = "NATS_URL",
        hide_env_values = true,
        default_value = "nats://127.0.0.1:4222",
        global = true
    )]
    pub nats_url: String,
    /// Name of the JetStream stream of the log
    #[arg(long, env = "NATS_STREAM", default_value = "MARKET", global = true)]
    pub nats_stream: String,
    /// First token of the subjects of the log. Streams of one server must have different prefixes
    #[arg(long, env = "NATS_SUBJECT_PREFIX", default_value = "market", global = true)]
    pub nats_subject_prefix: String,
    /// Number of replicas of the stream: 1 on one server, 3 in a cluster
    #[arg(long, env = "NATS_REPLICAS", default_value_t = 1, global = true)]
    pub nats_replicas: usize,
}

/// Oldest supported version of the NATS server.
pub const MINIMUM_SERVER: (u64, u64) = (2, 10);
/// Retry policy for opening the stream if the server does not answer the request, or cannot create the stream.
const RETRIES: ConstantBuilder =
    ConstantBuilder::new().with_delay(Duration::from_millis(500)).with_max_times(4);
/// Deduplication window: the time within which JetStream drops a message with a repeated id.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// Deduplication window during an import. It is short, because a log can contain the same message id twice.
pub const RESTORE_WINDOW: Duration = Duration::from_millis(100);
/// Hint for the operator if the stream is compressed.
pub const COPY_HINT: &str = "copy the log into an uncompressed stream with ingest export, then ingest import \
     --nats-stream OTHER --nats-subject-prefix other";
/// Key of the entry in the stream's metadata that stores the identity of the log.
pub const GENESIS: &str = "genesis_id";

/// Errors of opening and configuring the stream.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    #[error("cannot reach NATS at {url}: {source}")]
    Unreachable { url: String, source: async_nats::ConnectError },
    #[error(
        "NATS server {found} is too old: 2.10 or newer is needed (2.9 silently ignores sync_interval and filter_subjects)"
    )]
    TooOld { found: String },
    #[error("NATS_URL is empty: set it to the URL of the NATS server, for example nats://127.0.0.1:4222")]
    NoUrl,
    #[error("cannot use stream {stream}: {reason}")]
    JetStream { stream: String, reason: String },
    #[error(
        "cannot open stream {stream}: {source}; check that the server runs with JetStream (nats-server -js)"
    )]
    Unanswered { stream: String, source: GetStreamError },
    #[error("cannot create stream {stream}: {source}; the cause is in the log of the NATS server")]
    NotCreated { stream: String, source: CreateStreamError },
    #[error(
        "cannot use stream {stream}: its subjects overlap ({subjects} belong to {other}); a new NATS_STREAM also needs a new NATS_SUBJECT_PREFIX"
    )]
    SubjectsOverlap { stream: String, subjects: String, other: String },
    #[error(
        "cannot use stream {stream} with subject prefix {prefix}: it has the subjects {subjects}; set NATS_SUBJECT_PREFIX to their part before .*"
    )]
    OtherSubjects { stream: String, prefix: String, subjects: String },
    #[error("cannot use stream {stream}: its metadata has no {GENESIS}, so this service did not create it")]
    NotOurs { stream: String },
    #[error(
        "cannot find stream {stream}: nothing was loaded yet, or the server could not restore it at start (see its log); ingest import restores the second copy"
    )]
    Absent { stream: String },
}

impl StreamError {
    /// True if a retry may succeed, because the error is temporary.
    fn is_transient(&self) -> bool {
        matches!(self, Self::Unanswered { .. })
    }
}

impl StreamSettings {
    /// Subject of the messages of a kind.
    pub fn subject(&self, kind: Kind) -> String {
        format!("{}.{kind}", self.nats_subject_prefix)
    }

    /// Subject pattern that matches the messages of all kinds.
    fn all_subjects(&self) -> String {
        format!("{}.*", self.nats_subject_prefix)
    }

    /// Connects to NATS. Fails if the server is older than [`MINIMUM_SERVER`].
    pub async fn connect(&self, name: &str) -> Result<jetstream::Context, StreamError> {
        if self.nats_url.trim().is_empty() {
            return Err(StreamError::NoUrl);
        }
        let (url, lost) = (redact(&self.nats_url), AtomicBool::new(false));
        let client = async_nats::ConnectOptions::new()
            .name(name)
            .event_callback(move |event| {
                log_connection_event(&url, &lost, &event);
                async {}
            })
            .connection_timeout(Duration::from_secs(5))
            // A frozen server does not answer pings. After three unanswered pings, the client drops the connection.
            .ping_interval(Duration::from_secs(5))
            .connect(self.nats_url.split(',').map(str::trim).collect::<Vec<_>>())
            .await
            .map_err(|source| StreamError::Unreachable { url: redact(&self.nats_url), source })?;
        let found = client.server_info().version;
        if version_of(&found) < Some(MINIMUM_SERVER) {
            return Err(StreamError::TooOld { found });
        }
        let mut context = jetstream::new(client);
        context.set_timeout(Duration::from_secs(5));
        Ok(context)
    }

    /// Opens the stream. If it does not exist, creates it with a new identity.
    ///
    /// Unanswered requests are retried, because a cluster that lost a node must first elect a new leader.
    pub async fn open(&self, context: &jetstream::Context) -> Result<stream::Stream, StreamError> {
        let opened = (|| self.open_once(context)).retry(RETRIES).when(StreamError::is_transient).await?;
        warn_of_compression(&opened);
        Ok(opened)
    }

    /// Opens the stream. Fails if it does not exist.
    pub async fn open_existing(&self, context: &jetstream::Context) -> Result<stream::Stream, StreamError> {
        let opening = (|| self.open_existing_once(context)).retry(RETRIES);
        let found = opening.when(StreamError::is_transient).await?;
        warn_of_compression(&found);
        Ok(found)
    }

    async fn open_existing_once(&self, context: &jetstream::Context) -> Result<stream::Stream, StreamError> {
        let stream = || self.nats_stream.clone();
        let found = context.get_stream(&self.nats_stream).await.map_err(|source| match source.kind() {
            GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                StreamError::Absent { stream: stream() }
            }
            GetStreamErrorKind::Request => StreamError::Unanswered { stream: stream(), source },
            _ => self.unavailable(source),
        })?;
        let subjects = &found.cached_info().config.subjects;
        if !subjects.is_empty() && !subjects.contains(&self.all_subjects()) {
            let (prefix, subjects) = (self.nats_subject_prefix.clone(), subjects.join(", "));
            return Err(StreamError::OtherSubjects { stream: stream(), prefix, subjects });
        }
        Ok(found)
    }

    async fn open_once(&self, context: &jetstream::Context) -> Result<stream::Stream, StreamError> {
        match self.open_existing_once(context).await {
            Err(StreamError::Absent { .. }) => {
                // Two processes may create the stream at the same time, with different identities. The server refuses
                // one of them; that process then opens the existing stream.
                match self.create(context, self.config()).await {
                    Ok(stream) => Ok(stream),
                    Err(error) => context.get_stream(&self.nats_stream).await.map_err(|_| error),
                }
            }
            found => found,
        }
    }

    /// Creates the stream. A failed creation is retried, because the server can fail while it deletes another stream.
    async fn create(
        &self,
        context: &jetstream::Context,
        config: stream::Config,
    ) -> Result<stream::Stream, StreamError> {
        let create_once = || async {
            match context.create_stream(config.clone()).await {
                Ok(stream) => Ok(stream),
                Err(error) => Err(self.refusal(context, error).await),
            }
        };
        create_once.retry(RETRIES).when(|error| matches!(error, StreamError::NotCreated { .. })).await
    }

    /// Converts an error of creating or updating the stream. If the subjects overlap with another stream, the result
    /// names the other stream.
    async fn refusal(&self, context: &jetstream::Context, error: CreateStreamError) -> StreamError {
        match error.kind() {
            CreateStreamErrorKind::JetStream(cause)
                if cause.error_code() == ErrorCode::STREAM_SUBJECT_OVERLAP =>
            {
                let other = context.stream_by_subject(self.subject(Kind::Run)).await;
                let other =
                    other.map_or_else(|_| "another stream".to_owned(), |name| format!("stream {name}"));
                let subjects = self.all_subjects();
                StreamError::SubjectsOverlap { stream: self.nats_stream.clone(), subjects, other }
            }
            CreateStreamErrorKind::JetStream(cause) if cause.error_code() == ErrorCode::STREAM_CREATE => {
                StreamError::NotCreated { stream: self.nats_stream.clone(), source: error }
            }
            _ => self.unavailable(error),
        }
    }

    /// Opens or creates the stream for an import. An existing stream must be uncompressed, and empty or with the
    /// identity `genesis_id`. Until [`StreamSettings::end_import`], the deduplication window is [`RESTORE_WINDOW`].
    pub async fn open_for_import(
        &self,
        context: &jetstream::Context,
        genesis_id: &str,
    ) -> Result<stream::Stream, StreamError> {
        let mut config = self.config();
        config.duplicate_window = RESTORE_WINDOW;
        config.metadata.insert(GENESIS.to_owned(), genesis_id.to_owned());
        match context.get_stream(&self.nats_stream).await {
            Ok(stream) if stream_identity(&stream)? != genesis_id && stream.cached_info().state.last_sequence > 0 => {
                Err(self.unavailable(
                    "it has messages of another log; import into a stream that is empty or does not exist: --nats-stream OTHER --nats-subject-prefix other",
                ))
            }
            // Turning the compression off in the configuration is not enough, because nats-server still compresses an
            // existing stream.
            Ok(stream) if is_compressed(&stream) => Err(self.unavailable(
                "it is compressed; import into a stream that does not exist: --nats-stream OTHER --nats-subject-prefix other",
            )),
            Ok(_) => {
                if let Err(error) = context.update_stream(&config).await {
                    return Err(self.refusal(context, error).await);
                }
                context.get_stream(&self.nats_stream).await.map_err(|error| self.unavailable(error))
            }
            Err(_) => self.create(context, config).await,
        }
    }

    /// Sets the deduplication window back to its normal length after [`StreamSettings::open_for_import`].
    pub async fn end_import(&self, context: &jetstream::Context) -> Result<(), StreamError> {
        let stream = context.get_stream(&self.nats_stream).await.map_err(|error| self.unavailable(error))?;
        let config =
            stream::Config { duplicate_window: DUPLICATE_WINDOW, ..stream.cached_info().config.clone() };
        context.update_stream(&config).await.map_err(|error| self.unavailable(error))?;
        Ok(())
    }

    fn unavailable(&self, error: impl std::fmt::Display) -> StreamError {
        StreamError::JetStream { stream: self.nats_stream.clone(), reason: error.to_string() }
    }

    fn config(&self) -> stream::Config {
        let nanos =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos());
        let seed = format!("{}:{nanos}:{}", self.nats_stream, std::process::id());
        let genesis = blake3::hash(seed.as_bytes()).to_hex()[..32].to_owned();
        stream::Config {
            name: self.nats_stream.clone(),
            description: Some("Market events; append-only".to_owned()),
            subjects: vec![self.all_subjects()],
            storage: stream::StorageType::File,
            discard: stream::DiscardPolicy::New,
            deny_delete: true,
            deny_purge: true,
            // If nats-server is killed while it compresses or truncates a block, a compressed block can become
            // unreadable.
            compression: Some(stream::Compression::None),
            num_replicas: self.nats_replicas,
            duplicate_window: DUPLICATE_WINDOW,
            metadata: [(GENESIS.to_owned(), genesis), ("layout".to_owned(), "1".to_owned())].into(),
            ..stream::Config::default()
        }
    }
}

/// Identity of the stream: a unique id. If a stream is deleted and created again, its identity changes.
pub fn stream_identity(stream: &stream::Stream) -> Result<String, StreamError> {
    let config = &stream.cached_info().config;
    config.metadata.get(GENESIS).cloned().ok_or_else(|| StreamError::NotOurs { stream: config.name.clone() })
}

/// True if nats-server compresses the files of the stream.
pub fn is_compressed(stream: &stream::Stream) -> bool {
    stream.cached_info().config.compression == Some(stream::Compression::S2)
}

/// Logs a warning that the stream is compressed, once per process.
fn warn_of_compression(stream: &stream::Stream) {
    static WARNED: Once = Once::new();
    if is_compressed(stream) {
        let name = &stream.cached_info().config.name;
        WARNED.call_once(|| {
            tracing::warn!(
                stream = name,
                hint = COPY_HINT,
                "the stream is compressed; a kill of a NATS server can damage it"
            );
        });
    }
}

/// Logs a lost or restored connection to the server. `lost` is true while the connection is lost.
fn log_connection_event(url: &str, lost: &AtomicBool, event: &async_nats::Event) {
    match event {
        async_nats::Event::Disconnected if !lost.swap(true, Ordering::Relaxed) => {
            tracing::warn!(url, "connection to NATS lost: reconnecting");
        }
        async_nats::Event::Connected if lost.swap(false, Ordering::Relaxed) => {
            tracing::warn!(url, "connection to NATS restored");
        }
        _ => {}
    }
}

fn version_of(text: &str) -> Option<(u64, u64)> {
    let mut parts = text.split(['.', '-']).map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

/// Removes user names and passwords from NATS URLs, so that the URLs can be logged.
fn redact(url: &str) -> String {
    url.split(',')
        .map(|one| match one.rsplit_once('@') {
            Some((_, host)) => format!("nats://{host}"),
            None => one.to_owned(),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// Replica that lacks messages of the stream, or does not report its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaggingReplica {
    /// Name of the server that stores the replica; `None` if the replica is configured, but no server stores it.
    pub node: Option<String>,
    /// True if the leader has no contact with the server.
    pub offline: bool,
    /// Number of operations that the leader has applied and this replica has not.
    pub lag: u64,
}

impl fmt::Display for LaggingReplica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Some(node) if self.offline => write!(f, "the replica on {node} is offline"),
            Some(node) => write!(f, "the replica on {node} is not current, {} operations behind", self.lag),
            None => f.write_str("a replica has no server"),
        }
    }
}

/// Replicas that lack messages or do not report their state, according to the stream's leader.
pub fn find_lagging_replicas(info: &Info) -> Vec<LaggingReplica> {
    let peers = info.cluster.iter().flat_map(|cluster| &cluster.replicas);
    let mut lagging: Vec<LaggingReplica> = peers
        .clone()
        .filter(|peer| !peer.current || peer.offline)
        .map(|peer| LaggingReplica {
            node: Some(peer.name.clone()),
            offline: peer.offline,
            lag: peer.lag.unwrap_or_default(),
        })
        .collect();
    let leader = 1;
    for _ in peers.count() + leader..info.config.num_replicas {
        lagging.push(LaggingReplica { node: None, offline: true, lag: info.state.last_sequence });
    }
    lagging
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod replica_tests;
