//! Finds the feed files of the observations (records and bars) that an explanation of metrics lists.

use std::collections::{BTreeSet, HashMap};

use market::metrics::{ExplainedObservation, Explanation};
use tokio_postgres::GenericClient;

const FILES: &str = "select frame, file from {frames} where frame = any($1) and file <> ''";

/// Adds the name of the feed file to each observation that an explanation lists. `frames` is the fact set's table of
/// record batches.
///
/// # Errors
/// Postgres rejects the query or is unreachable.
pub async fn name_files(
    client: &impl GenericClient,
    frames: &str,
    explanation: &mut Explanation,
) -> Result<(), tokio_postgres::Error> {
    let used = explanation.metrics.iter_mut().flat_map(|metric| &mut metric.observations);
    let mut observations: Vec<&mut ExplainedObservation> = used.chain(&mut explanation.unused).collect();
    let ids: BTreeSet<[u8; 16]> = observations.iter().filter_map(|observation| observation.frame).collect();
    let ids: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
    let mut files: HashMap<Vec<u8>, String> = HashMap::new();
    for row in client.query(&FILES.replace("{frames}", frames), &[&ids]).await? {
        files.insert(row.try_get("frame")?, row.try_get("file")?);
    }
    for observation in &mut observations {
        observation.file = observation.frame.and_then(|frame| files.get(&frame[..]).cloned());
    }
    Ok(())
}
