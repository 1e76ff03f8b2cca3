//! Random secrets of sessions and one-time links. Only their hashes are stored.

use rand::RngExt;
use secrecy::SecretString;
use sha2::{Digest, Sha256};

/// Number of random bytes in a secret.
const RANDOM: usize = 32;

/// New secret with its hash.
#[derive(Debug)]
pub(crate) struct Token {
    /// Secret in hexadecimal digits.
    pub(crate) text: SecretString,
    pub(crate) hash: [u8; 32],
}

impl Token {
    pub(crate) fn generate() -> Self {
        let random: [u8; RANDOM] = rand::rng().random();
        let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { hash: Self::hash(&text), text: text.into() }
    }

    /// Hash of a secret that a client presents.
    pub(crate) fn hash(text: &str) -> [u8; 32] {
        Sha256::digest(text.as_bytes()).into()
    }
}
