//! A local object store with the S3 protocol, served by the program moto if it is installed.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use harness::{Requirement, eventually, free_port, optional_program};

const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Store {
    pub address: String,
    process: Child,
    client: reqwest::Client,
}

impl Store {
    /// Starts a store with an empty bucket. Returns `None` if moto is not installed, and records the test as skipped.
    pub(super) async fn start(bucket: &str) -> Result<Option<Store>> {
        let Some(moto) = optional_program("moto_server", Requirement::ObjectStore) else { return Ok(None) };
        let port = free_port()?.to_string();
        let process = Command::new(moto)
            .args(["-H", "127.0.0.1", "-p", &port])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let address = format!("http://127.0.0.1:{port}");
        let store = Store { address, process, client: harness::client(PATIENCE)? };
        eventually(PATIENCE, async || store.put(bucket, "").await).await?;
        Ok(Some(store))
    }

    /// Writes an object, or creates a bucket if `path` is only a bucket's name.
    pub(super) async fn put(&self, path: &str, text: &str) -> Result<()> {
        let put = self.client.put(format!("{}/{path}", self.address)).body(text.to_owned());
        // The store requires a signature but does not check it.
        let put = put.header("Authorization", "AWS4-HMAC-SHA256 Credential=key/20240315/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0");
        let answer = put.send().await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
