//! Root certificates of the harness's HTTPS clients: the certificates of the system, or Mozilla's list if the system
//! has none.
//!
//! Invariant: every HTTPS connection checks the server's certificate, even on a machine without root certificates.

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

/// Root certificates to trust: the usable certificates in `found`, or Mozilla's list if there are none. `variable` is
/// the name of the environment variable with which the user selected `found`, if the user did. In this case, the
/// function fails instead of returning Mozilla's list.
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
