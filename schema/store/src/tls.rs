//! TLS towards Postgres where its URL demands it (`sslmode=require`).
//!
//! Certificates are checked always, against the system's roots or those of the file that `SSL_CERT_FILE` names, and
//! against the host's name. A URL that does not demand TLS goes without.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

pub use tokio_postgres_rustls::MakeRustlsConnect;

/// What connections of this configuration are made with.
pub fn connector(config: &Config) -> Result<MakeRustlsConnect, rustls::Error> {
    let mut roots = RootCertStore::empty();
    if config.get_ssl_mode() != SslMode::Disable {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!("a root certificate cannot be used: {error}");
        }
        roots.add_parsable_certificates(found.certs);
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(MakeRustlsConnect::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// A configuration that uses TLS just where its URL demands it: one that may fall back would be no protection.
pub(crate) fn as_demanded(config: &mut Config) {
    if config.get_ssl_mode() != SslMode::Require {
        config.ssl_mode(SslMode::Disable);
    }
}
