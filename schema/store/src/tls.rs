//! TLS connections to Postgres, for URLs with `sslmode=require`. Other connections are unencrypted.
//!
//! The server's certificate must match the host name. It must be signed by a root certificate of the system or of the
//! file `SSL_CERT_FILE`.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

pub use tokio_postgres_rustls::MakeRustlsConnect;

/// TLS connector for a connection with these settings.
pub fn tls_connector(config: &Config) -> Result<MakeRustlsConnect, rustls::Error> {
    let mut roots = RootCertStore::empty();
    if config.get_ssl_mode() != SslMode::Disable {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "cannot use a root certificate");
        }
        roots.add_parsable_certificates(found.certs);
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    Ok(MakeRustlsConnect::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Disables TLS unless the URL requires it. Optional TLS gives no protection, because the client continues unencrypted
/// if TLS fails.
pub(crate) fn disable_opportunistic_tls(config: &mut Config) {
    if config.get_ssl_mode() != SslMode::Require {
        config.ssl_mode(SslMode::Disable);
    }
}
