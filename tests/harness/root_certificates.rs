//! Root certificates of the harness's HTTPS clients: the system's certificates, or else Mozilla's list.
//!
//! Invariant: every HTTPS connection checks the server's certificate.

use anyhow::{Context, Result, bail};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::environment;

const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

pub(crate) fn tls_configuration() -> Result<ClientConfig> {
    let system = rustls_native_certs::load_native_certs();
    let variable = VARIABLES.into_iter().find(|variable| environment::read_variable(variable).is_some());
    let roots = root_store(system.certs, variable)?;
    let builder = ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
    let builder = builder.with_safe_default_protocol_versions().context("cannot set up TLS")?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Returns the usable certificates in `found`. If there are none, returns Mozilla's list, or fails if `variable` is
/// given. `variable` names the environment variable that selected `found`.
pub fn root_store(found: Vec<CertificateDer<'static>>, variable: Option<&str>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found);
    if roots.is_empty() {
        if let Some(variable) = variable {
            bail!("cannot read root certificates: {variable} names none; correct it or unset it");
        }
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    Ok(roots)
}
