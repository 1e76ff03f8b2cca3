//! Tests that run every fuzz target with its corpus, with damaged corpus entries, and with random bytes. A target must
//! not panic.

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;

#[path = "../../tests/fuzz/src/lib.rs"]
pub mod fuzz;

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 5] = [
    ("formats", fuzz::formats),
    ("maps", fuzz::maps),
    ("records", fuzz::records),
    ("batches", fuzz::batches),
    ("columns", fuzz::columns),
];

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fuzz/corpus").join(target);
    let files = std::fs::read_dir(folder).expect("a corpus lies beside its target");
    let read = |file: std::io::Result<std::fs::DirEntry>| std::fs::read(file?.path());
    files.map(|file| read(file).expect("a file of the corpus")).collect()
}

#[test]
fn every_target_survives_its_corpus() {
    for (name, target) in TARGETS {
        let corpus = corpus(name);
        assert!(!corpus.is_empty(), "{name} has no corpus");
        corpus.iter().for_each(|bytes| target(bytes));
    }
}

proptest! {
    #[test]
    fn every_target_survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        TARGETS.iter().for_each(|(_, target)| target(&bytes));
    }

    #[test]
    fn every_target_survives_a_damaged_corpus(
        file in any::<Index>(),
        at in any::<Index>(),
        length in 0usize..20,
        damage in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        for (name, target) in TARGETS {
            let corpus = corpus(name);
            let mut bytes = file.get(&corpus).clone();
            if !bytes.is_empty() {
                let start = at.index(bytes.len());
                bytes.splice(start..(start + length).min(bytes.len()), damage.iter().copied());
            }
            target(&bytes);
        }
    }
}
