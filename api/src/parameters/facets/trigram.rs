//! Trigram similarity: share of three-letter sequences that two names have in common.

/// Hashes of the trigrams of the words in a text, sorted and without duplicates.
pub(crate) fn trigrams(text: &str) -> Vec<u32> {
    let mut all = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let padded: Vec<u32> = [u32::from(' '); 2]
            .into_iter()
            .chain(word.chars().map(u32::from))
            .chain([u32::from(' ')])
            .collect();
        all.extend(
            padded.windows(3).map(|w| w[0].wrapping_mul(0x0100_0193) ^ w[1].wrapping_mul(0x0001_9660) ^ w[2]),
        );
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Share of the trigrams in `wanted` that are also in `name`, in thousandths.
pub(crate) fn trigram_similarity(wanted: &[u32], name: &[u32]) -> u32 {
    let shared = wanted.iter().filter(|trigram| name.binary_search(trigram).is_ok()).count();
    let parts = wanted.len().max(1);
    #[expect(clippy::cast_possible_truncation, reason = "a part of the whole is at most 1,000 thousandths")]
    let thousandths = (shared * 1_000 / parts) as u32;
    thousandths
}
