//! Record batches of a run, computed from its manifest.

use market::event::RunManifest;

use crate::envelope::BatchId;
use crate::envelope::schema_name;

/// Ids of all record batches of a completed run, computed from its manifest.
pub fn batch_ids_of_run(run: &RunManifest) -> impl Iterator<Item = BatchId> {
    run.frames.iter().flat_map(move |cut| {
        let schema = schema_name(cut.kind);
        (0..cut.frames).map(move |chunk| BatchId::from_provenance(&run.source, &cut.input, chunk, &schema))
    })
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use market::event::{InputBatchCount, Kind, RunState};

    use super::*;

    #[test]
    fn a_manifest_promises_the_ids_of_its_batches() {
        let begun =
            RunManifest::started("r".to_owned(), "eod".to_owned(), "auto".to_owned(), DateTime::UNIX_EPOCH);
        let cut = |kind, batches| InputBatchCount { input: "a".to_owned(), kind, frames: batches };
        let run = RunManifest {
            state: RunState::Completed,
            frames: vec![cut(Kind::Price, 2), cut(Kind::Dividend, 1)],
            ..begun
        };
        let ids: Vec<BatchId> = batch_ids_of_run(&run).collect();
        let of = |chunk, schema: &str| BatchId::from_provenance("eod", "a", chunk, schema);
        assert_eq!(ids, [of(0, "price.v1"), of(1, "price.v1"), of(0, "dividend.v1")]);
    }
}
