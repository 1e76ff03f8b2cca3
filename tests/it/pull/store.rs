//! A local object store with the S3 protocol, served by the program moto if it is installed.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use harness::{Requirement, eventually, free_port, optional_program};

const PATIENCE: Duration = Duration::from_secs(120);
/// The store requires a signature but does not check it.
const SIGNATURE: &str =
    "AWS4-HMAC-SHA256 Credential=key/20240315/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

pub(crate) struct Store {
    pub address: String,
    process: Child,
    client: reqwest::Client,
}

impl Store {
    /// Starts a store with an empty bucket. Returns `None` if moto is not installed, and records the test as skipped.
    pub(crate) async fn start(bucket: &str) -> Result<Option<Store>> {
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
    pub(crate) async fn put(&self, path: &str, text: &str) -> Result<()> {
        let put = self.client.put(format!("{}/{path}", self.address)).body(text.to_owned());
        let answer = put.header("Authorization", SIGNATURE).send().await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        Ok(())
    }

    /// Reads an object. Returns `None` if it does not exist.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let get = self.client.get(format!("{}/{path}", self.address)).header("Authorization", SIGNATURE);
        let answer = get.send().await?;
        if answer.status() == 404 {
            return Ok(None);
        }
        Ok(Some(answer.error_for_status()?.bytes().await?.into()))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
