//! One batch of the log in one transaction: facts, dead letters, dirty symbols, and the position.
//!
//! A frame that Postgres refuses is bisected under savepoints, rows after frames, until the row that cannot be
//! applied stands alone; it becomes a dead letter and its neighbours go on.

use std::collections::HashSet;

use event_log::frame::{Body, Frame, FrameError};
use process::failpoint;
use store::db::{DbError, error_chain};
use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;

use crate::consume::Message;
use crate::dead_letters::{DeadLetter, printable, record};
use crate::facts::{apply_bookkeeping, apply_records, known_frames, record_frames};
use crate::prices::{PricesError, apply_prices};

/// Why a batch could not be applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error("message {sequence}: {source}. The projector stops here rather than skip it")]
    NewerVersion { sequence: u64, source: FrameError },
    #[error("a text of {symbol} holds the character U+0000, which Postgres cannot store")]
    NulCharacter { symbol: String },
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Prices(#[from] PricesError),
}

impl From<tokio_postgres::Error> for ApplyError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Db(error.into())
    }
}

impl ApplyError {
    /// A refusal that will be the same next time, with its stable code; anything else is worth a retry.
    fn deterministic(&self) -> Option<String> {
        match self {
            Self::Db(DbError::Statement(error))
            | Self::Prices(PricesError::Db(DbError::Statement(error))) => {
                // Errors without a server's answer come from encoding a parameter, or from a broken connection.
                let Some(code) = error.code() else {
                    return (!error.is_closed()).then(|| "not_storable".to_owned());
                };
                let class = &code.code()[..2];
                let data =
                    matches!(class, "21" | "22" | "23" | "54") || *code == SqlState::UNTRANSLATABLE_CHARACTER;
                data.then(|| format!("sql_{}", code.code().to_lowercase()))
            }
            Self::Db(DbError::Encode(_)) | Self::Prices(PricesError::Db(DbError::Encode(_))) => {
                Some("not_storable".to_owned())
            }
            Self::Prices(PricesError::Bars { .. }) => Some("bad_columns".to_owned()),
            Self::NulCharacter { .. } => Some("nul_character".to_owned()),
            _ => None,
        }
    }
}

/// A message's frame and where it stands in the log.
#[derive(Debug, Clone)]
struct Placed {
    sequence: u64,
    subject: String,
    /// First row's number within the message, from 1; kept while a frame is bisected.
    first_item: i32,
    frame: Frame,
}

/// Applies the messages' facts. The caller owns the transaction and commits it with the checkpoint.
pub async fn apply_messages(
    transaction: &mut Transaction<'_>,
    fact_set: &str,
    messages: &[Message],
) -> Result<(), ApplyError> {
    let (frames, mut letters) = decode(messages)?;
    let fresh = without_known(transaction, frames).await?;
    let pairs: Vec<(u64, &Frame)> = fresh.iter().map(|placed| (placed.sequence, &placed.frame)).collect();
    record_frames(transaction, &pairs).await?;
    letters.extend(apply_frames(transaction, fact_set, fresh).await?);
    record(transaction, fact_set, &letters).await?;
    Ok(())
}

/// Applies a message again, whole, for the sake of its dead letters, and gives those that still stand. Facts are a set,
/// so what was applied the first time stays as it is.
pub async fn apply_again(
    transaction: &mut Transaction<'_>,
    fact_set: &str,
    message: &Message,
) -> Result<Vec<DeadLetter>, ApplyError> {
    let (frames, mut letters) = decode(std::slice::from_ref(message))?;
    let missing = without_known(transaction, frames.clone()).await?;
    let pairs: Vec<(u64, &Frame)> = missing.iter().map(|placed| (placed.sequence, &placed.frame)).collect();
    record_frames(transaction, &pairs).await?;
    letters.extend(apply_frames(transaction, fact_set, frames).await?);
    Ok(letters)
}

/// Applies frames, bisecting what is refused down to the rows that cannot be applied.
async fn apply_frames(
    transaction: &mut Transaction<'_>,
    fact_set: &str,
    frames: Vec<Placed>,
) -> Result<Vec<DeadLetter>, ApplyError> {
    let (mut open, mut letters) = (vec![frames], Vec::new());
    while let Some(group) = open.pop().filter(|group| !group.is_empty()) {
        let Some((error, code)) = try_group(transaction, fact_set, &group).await? else { continue };
        match split(group) {
            Split::Halves(left, right) => open.extend([right, left]),
            Split::Single(placed) => letters.push(dead(&placed, code, error_chain(&error))),
        }
    }
    Ok(letters)
}

/// Applies a group under a savepoint; a deterministic refusal is undone and returned.
async fn try_group(
    transaction: &mut Transaction<'_>,
    fact_set: &str,
    group: &[Placed],
) -> Result<Option<(ApplyError, String)>, ApplyError> {
    let savepoint = transaction.transaction().await?;
    let outcome = apply_group(&savepoint, fact_set, group).await;
    match outcome {
        Ok(()) => {
            savepoint.commit().await?;
            Ok(None)
        }
        Err(error) => match error.deterministic() {
            Some(code) => {
                savepoint.rollback().await?;
                failpoint!("projector.bisecting");
                Ok(Some((error, code)))
            }
            None => Err(error),
        },
    }
}

async fn apply_group(
    savepoint: &Transaction<'_>,
    fact_set: &str,
    group: &[Placed],
) -> Result<(), ApplyError> {
    let frames: Vec<&Frame> = group.iter().map(|placed| &placed.frame).collect();
    let pairs: Vec<(u64, &Frame)> = group.iter().map(|placed| (placed.sequence, &placed.frame)).collect();
    apply_records(savepoint, fact_set, &frames).await?;
    apply_prices(savepoint, fact_set, &frames).await?;
    apply_bookkeeping(savepoint, &pairs).await?;
    // The next group of this transaction stages its own rows.
    savepoint.batch_execute("truncate staged_observations, staged_rejects").await?;
    Ok(())
}

/// Decodes on all cores; damage becomes a dead letter, a newer version stops.
fn decode(messages: &[Message]) -> Result<(Vec<Placed>, Vec<DeadLetter>), ApplyError> {
    use rayon::prelude::*;
    let decoded: Vec<(&Message, Result<Frame, FrameError>)> = tokio::task::block_in_place(|| {
        messages
            .par_iter()
            .map(|message| (message, Frame::decode(message.headers.as_ref(), &message.payload)))
            .collect()
    });
    let (mut frames, mut letters) = (Vec::new(), Vec::new());
    for (message, outcome) in decoded {
        match outcome {
            Ok(frame) => frames.push(Placed {
                sequence: message.sequence,
                subject: message.subject.clone(),
                first_item: 1,
                frame,
            }),
            Err(source) if source.stops_reader() => {
                return Err(ApplyError::NewerVersion { sequence: message.sequence, source });
            }
            Err(error) => letters.push(undecodable(message, &error)),
        }
    }
    Ok((frames, letters))
}

fn undecodable(message: &Message, error: &FrameError) -> DeadLetter {
    let code = match error {
        FrameError::Header(_) => "bad_headers",
        FrameError::Json(_) => "bad_json",
        FrameError::Columns(_) | FrameError::Postcard(_) => "bad_columns",
        FrameError::Compression(_) => "bad_compression",
        FrameError::NewerVersion { .. } => "newer_version",
    };
    let header = |name: &str| {
        message.headers.as_ref().and_then(|h| h.get(name)).map(|v| printable(v.as_str().as_bytes()))
    };
    DeadLetter {
        sequence: message.sequence,
        item: 0,
        code: code.to_owned(),
        reason: printable(error_chain(error).as_bytes()),
        subject: message.subject.clone(),
        frame: header("Nats-Msg-Id"),
        source: header("Dds-Source"),
        file: header("Dds-File"),
        line: None,
        payload: printable(&message.payload),
    }
}

/// Drops frames that were applied before, in an earlier batch or earlier in this one.
async fn without_known(
    transaction: &Transaction<'_>,
    frames: Vec<Placed>,
) -> Result<Vec<Placed>, ApplyError> {
    let ids: Vec<&[u8]> = frames.iter().map(|placed| placed.frame.id.0.as_slice()).collect();
    let known = known_frames(transaction, &ids).await?;
    let mut seen = HashSet::new();
    Ok(frames
        .into_iter()
        .filter(|p| !known.contains(p.frame.id.0.as_slice()) && seen.insert(p.frame.id))
        .collect())
}

enum Split {
    Halves(Vec<Placed>, Vec<Placed>),
    Single(Box<Placed>),
}

fn split(mut group: Vec<Placed>) -> Split {
    if group.len() > 1 {
        let right = group.split_off(group.len() / 2);
        return Split::Halves(group, right);
    }
    let placed = group.remove(0);
    match placed.frame.body.halves() {
        Some((left, right)) => {
            let offset = i32::try_from(left.rows()).unwrap_or(i32::MAX);
            let part = |body: Body, first_item: i32| Placed {
                first_item,
                frame: Frame { body, ..placed.frame.clone() },
                ..placed.clone()
            };
            Split::Halves(
                vec![part(left, placed.first_item)],
                vec![part(right, placed.first_item.saturating_add(offset))],
            )
        }
        None => Split::Single(Box::new(placed)),
    }
}

fn dead(placed: &Placed, code: String, reason: String) -> DeadLetter {
    let frame = &placed.frame;
    let shown = frame.body.rows_json().map_or_else(|error| error_chain(&error), |rows| rows.to_string());
    DeadLetter {
        sequence: placed.sequence,
        item: placed.first_item,
        code,
        reason: printable(reason.as_bytes()),
        subject: placed.subject.clone(),
        frame: Some(frame.id.to_string()),
        source: Some(printable(frame.source.as_bytes())),
        file: Some(printable(frame.file.as_bytes())),
        line: frame.body.first_line().and_then(|line| i64::try_from(line).ok()),
        payload: printable(shown.as_bytes()),
    }
}
