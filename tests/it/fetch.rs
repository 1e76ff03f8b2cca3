//! Tests of the download of pinned server builds. Interrupted downloads are resumed, unexpected files are refused,
//! several processes share one download, and certificates are checked.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::fetch::{Archive, Build, Source, install, unpack_tar_gz};
use harness::{Certificate, eventually, folder_variable, free_port, root_store, temporary_folder};
use reqwest::Url;
use sha2::{Digest, Sha256};

use registry::Registry;

mod registry;

/// Environment variable with the cache folder of a child process. The file `url` in this folder contains the address to
/// download.
const CHILD_FOLDER: &str = "FETCH_TEST_FOLDER";
const PROGRAM_BYTES: usize = 300_000;

/// Builds an npm package whose content does not compress.
fn package() -> Result<Vec<u8>> {
    let mut state = 7_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    });
    let program: Vec<u8> = noise.take(PROGRAM_BYTES).collect();
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(program.len() as u64);
    header.set_mode(0o755);
    tar.append_data(&mut header, "package/program", program.as_slice())?;
    Ok(tar.into_inner()?.finish()?)
}

fn build(bytes: &[u8], source: Source) -> Build {
    Build {
        name: "server",
        version: "1.0".to_owned(),
        folder: "server-1.0".to_owned(),
        archive: Archive {
            file: "server-1.0.tgz".to_owned(),
            size_bytes: bytes.len() as u64,
            sha256: Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
            source,
        },
        unpack: unpack_tar_gz,
        is_intact: |folder| folder.join("package/program").is_file(),
        alternative: "set SERVER to another one",
    }
}

/// Returns the names of the files and folders in a cache, except lock files.
fn content(cache: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(cache)?.flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.ends_with(".lock"));
    names.sort();
    Ok(names)
}

#[tokio::test]
async fn an_interrupted_download_is_resumed_where_it_ended() -> Result<()> {
    let (bytes, cache) = (package()?, temporary_folder("fetch")?);
    let half = bytes.len() / 2;
    let registry = Registry::start(&bytes).await?.closing_first_response_after(half);
    let folder = install(&build(&bytes, registry.file()), "a test", &cache).await?;
    assert_eq!(fs::metadata(folder.join("package/program"))?.len(), PROGRAM_BYTES as u64);
    assert_eq!(registry.ranges(), [None, Some(half)]);
    assert_eq!(content(&cache)?, ["server-1.0"]);
    // The build is installed now, so another call sends no request.
    install(&build(&bytes, registry.file()), "a test", &cache).await?;
    assert_eq!(registry.ranges().len(), 2);
    Ok(())
}

#[tokio::test]
async fn the_part_of_an_earlier_process_is_continued() -> Result<()> {
    let (bytes, cache) = (package()?, temporary_folder("fetch")?);
    let registry = Registry::start(&bytes).await?;
    fs::write(cache.join("server-1.0.tgz.part"), &bytes[..1000])?;
    install(&build(&bytes, registry.file()), "a test", &cache).await?;
    assert_eq!(registry.ranges(), [Some(1000)]);
    Ok(())
}

#[tokio::test]
async fn the_part_of_another_file_is_fetched_again() -> Result<()> {
    let (bytes, cache) = (package()?, temporary_folder("fetch")?);
    let registry = Registry::start(&bytes).await?;
    fs::write(cache.join("server-1.0.tgz.part"), vec![0; 1000])?;
    install(&build(&bytes, registry.file()), "a test", &cache).await?;
    assert_eq!(registry.ranges(), [Some(1000), None]);
    Ok(())
}

#[tokio::test]
async fn a_server_without_ranges_and_a_busy_one_serve() -> Result<()> {
    let (bytes, cache) = (package()?, temporary_folder("fetch")?);
    let registry = Registry::start(&bytes).await?.without_ranges().answering_first_request_with(503);
    fs::write(cache.join("server-1.0.tgz.part"), &bytes[..1000])?;
    install(&build(&bytes, registry.file()), "a test", &cache).await?;
    assert_eq!(registry.ranges(), [Some(1000), Some(1000)]);
    Ok(())
}

#[tokio::test]
async fn a_file_with_another_checksum_is_refused_and_not_unpacked() -> Result<()> {
    let (bytes, cache) = (package()?, temporary_folder("fetch")?);
    let mut other = bytes.clone();
    other[5000] ^= 1;
    let registry = Registry::start(&other).await?;
    let build = build(&bytes, registry.file());
    let refused = install(&build, "a test", &cache).await.unwrap_err().to_string();
    assert!(refused.contains("cannot fetch server 1.0: "), "{refused}");
    assert!(refused.contains(&build.archive.sha256), "{refused}");
    assert!(refused.contains("set SERVER to another one"), "{refused}");
    assert_eq!(content(&cache)?, [""; 0]);
    Ok(())
}

#[tokio::test]
async fn a_file_of_another_size_is_refused_after_one_request() -> Result<()> {
    let (bytes, cache) = (package()?, temporary_folder("fetch")?);
    let registry = Registry::start(&bytes[..bytes.len() - 1]).await?;
    let refused = install(&build(&bytes, registry.file()), "a test", &cache).await.unwrap_err();
    assert!(refused.to_string().contains("bytes are pinned"), "{refused}");
    assert_eq!(registry.ranges(), [None]);
    Ok(())
}

#[tokio::test]
async fn a_mirror_of_the_package_index_leads_to_the_file() -> Result<()> {
    let (bytes, cache) = (package()?, temporary_folder("fetch")?);
    let registry = Registry::start(&bytes).await?;
    install(&build(&bytes, registry.index_page()?), "a test", &cache).await?;
    assert_eq!(registry.paths(), ["/simple/server/", "/files/server-1.0.tgz"]);
    Ok(())
}

#[tokio::test]
async fn a_file_that_was_brought_by_hand_needs_no_registry() -> Result<()> {
    let (bytes, cache) = (package()?, temporary_folder("fetch")?);
    fs::write(cache.join("server-1.0.tgz"), &bytes)?;
    let nowhere = Source::File(Url::parse(&format!("http://127.0.0.1:{}/", free_port()?))?);
    install(&build(&bytes, nowhere), "a test", &cache).await?;
    assert_eq!(content(&cache)?, ["server-1.0"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_at_once_download_once() -> Result<()> {
    let (bytes, cache) = (package()?, temporary_folder("fetch")?);
    let registry = Registry::start(&bytes).await?;
    let paused = registry.pause().await;
    let mut children = [child(&cache, &registry.url, &[])?, child(&cache, &registry.url, &[])?];
    // One process has the lock and waits for the registry. The other one waits for the lock.
    let (sender, lines) = mpsc::channel();
    for child in &mut children {
        let (errors, sender) = (child.stderr.take().context("a pipe")?, sender.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
    }
    drop(sender);
    let waits = |line: String| line.contains("waiting for another process that fetches server 1.0");
    ensure!(lines.iter().any(waits), "no process waits");
    drop(paused);
    for child in &mut children {
        assert!(child.wait()?.success());
    }
    assert_eq!(registry.ranges(), [None]);
    assert_eq!(content(&cache)?, ["server-1.0", "url"]);
    Ok(())
}

#[tokio::test]
async fn an_untrusted_certificate_is_refused_and_one_of_ssl_cert_file_trusted() -> Result<()> {
    let (bytes, cache, site) = (package()?, temporary_folder("fetch")?, temporary_folder("site")?);
    fs::write(site.join("server-1.0.tgz"), &bytes)?;
    let Some(certificate) = Certificate::make(&site)? else { return Ok(()) };
    let (port, _server) = serve_https(&certificate, &site).await?;
    let url = Url::parse(&format!("https://127.0.0.1:{port}/server-1.0.tgz"))?;
    let refused = install(&build(&bytes, Source::File(url.clone())), "a test", &cache).await;
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("invalid peer certificate"), "{refused}");
    assert_eq!(content(&cache)?, [""; 0]);
    let trusted = child(&cache, &url, &[("SSL_CERT_FILE", &certificate.certificate)])?;
    let trusted = trusted.wait_with_output()?;
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
    assert!(cache.join("server-1.0/package/program").is_file());
    Ok(())
}

#[test]
fn a_machine_without_certificates_checks_against_those_of_the_program() -> Result<()> {
    ensure!(root_store(Vec::new(), None)?.len() > 50);
    // A configured path without certificates is an error. The certificates of the program are not used in this case.
    let error = root_store(Vec::new(), Some("SSL_CERT_FILE")).unwrap_err();
    assert!(error.to_string().starts_with("cannot read root certificates: SSL_CERT_FILE"), "{error}");
    Ok(())
}

#[test]
fn a_start_names_all_that_the_machine_lacks_at_once() -> Result<()> {
    let empty = temporary_folder("empty")?;
    let output = Command::new(env!("CARGO_BIN_EXE_stack"))
        .env("PATH", &empty)
        .env("STACK_DIR", empty.join("stack"))
        .envs([("npm_config_registry", "http://127.0.0.1"), ("PIP_INDEX_URL", "http://127.0.0.1")])
        .output()?;
    let errors = String::from_utf8(output.stderr)?;
    assert!(!output.status.success());
    for text in ["sh on PATH", "setpriv on PATH", "apt-get install util-linux"] {
        assert!(errors.contains(text), "{errors}");
    }
    assert!(!empty.join("stack").exists());
    Ok(())
}

/// Code of the child processes that [`child`] starts. In an ordinary test run, this test does nothing.
#[tokio::test]
async fn child_process() -> Result<()> {
    let Some(folder) = folder_variable(CHILD_FOLDER) else { return Ok(()) };
    let source = Source::File(Url::parse(&fs::read_to_string(folder.join("url"))?)?);
    install(&build(&package()?, source), "a test", &folder).await?;
    Ok(())
}

/// Starts a process that runs [`child_process`]: it installs the test package from `url` into the folder `cache`.
fn child(cache: &Path, url: &Url, variables: &[(&str, &PathBuf)]) -> Result<Child> {
    fs::File::create(cache.join("url"))?.write_all(url.as_str().as_bytes())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--exact", "fetch::child_process", "--nocapture"]);
    command.env(CHILD_FOLDER, cache).env_remove("SSL_CERT_DIR").envs(variables.iter().copied());
    Ok(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?)
}

/// Starts an HTTPS server for the files in `folder`. Returns the port, and a guard that ends the server when the guard
/// is dropped.
async fn serve_https(certificate: &Certificate, folder: &Path) -> Result<(u16, KilledChild)> {
    let port = free_port()?;
    let mut server = Command::new("openssl");
    server.args(["s_server", "-quiet", "-WWW", "-accept", &format!("127.0.0.1:{port}")]);
    server.arg("-cert").arg(&certificate.certificate).arg("-key").arg(&certificate.key);
    let server = server.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let server = KilledChild(server);
    eventually(Duration::from_secs(120), async || Ok(TcpStream::connect(("127.0.0.1", port))?)).await?;
    Ok((port, server))
}

struct KilledChild(Child);

impl Drop for KilledChild {
    fn drop(&mut self) {
        // The server may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
