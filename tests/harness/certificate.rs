//! Self-signed certificate for 127.0.0.1, like the certificate of an installation that has no public host name.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use skipped::Requirement;

use crate::environment::optional_program;

/// Files of a certificate and of its private key.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// File with the certificate in PEM. Clients trust it as a root certificate.
    pub certificate: PathBuf,
    /// File with the private key in PEM, without a passphrase.
    pub key: PathBuf,
}

impl Certificate {
    /// Creates a certificate in a folder with `openssl`. If `openssl` is missing, records the test as skipped and
    /// returns `None`.
    pub fn make(folder: &Path) -> Result<Option<Certificate>> {
        let Some(openssl) = optional_program("openssl", Requirement::OpenSsl) else { return Ok(None) };
        let made = Certificate { certificate: folder.join("server.crt"), key: folder.join("server.key") };
        let output = Command::new(openssl)
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE"])
            .arg("-out")
            .arg(&made.certificate)
            .arg("-keyout")
            .arg(&made.key)
            .output()
            .context("running openssl")?;
        ensure!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
        Ok(Some(made))
    }
}
