//! Versions on an object store: their rows, and what readers see during kills, conflicts and retention.

mod proxy;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};
use harness::{Output, Program, Requirement, Signal, TestApp, TestAppBuilder, eventually, optional_program};
use proxy::{Fault, Proxy};
use serde_json::{Value, json};

use crate::api_world::World;
use crate::pull::store::Store;

const TIMEOUT: Duration = Duration::from_secs(120);
const DAY: Duration = Duration::from_secs(24 * 3600);
const PRICES: &str = "symbol,date,close\nKO,2023-06-28,60\nKO,2024-06-27,63\nPEP,2024-06-27,164.25\n";

/// Reads a table with the Python client, and compares it with the API.
const CLIENT: &str = "
import sys
from dds_client import Client
with Client() as client:
    files = client.files(sys.argv[1])
    rows = [row for row in files.read('dividends').to_pylist() if row['symbol'] == 'COLA' and row['id']]
    served = {row.id: row for row in client.stocks_by_symbol_dividends_pages('COLA', limit=100).rows()}
    assert files.data_version == sys.argv[1] and len(rows) == len(served) > 100, (len(rows), len(served))
    for row in rows:
        assert (row['ex_date'], row['amount']) == (served[row['id']].ex_date, served[row['id']].amount), row
";

/// Adds the settings of an object store to every program of an app.
fn with_store(builder: TestAppBuilder, store: &Store) -> TestAppBuilder {
    let settings =
        [("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "s3cret"), ("AWS_ALLOW_HTTP", "true")];
    let builder = settings.into_iter().fold(builder, |builder, (name, value)| builder.env(name, value));
    builder.env("AWS_ENDPOINT_URL", &store.address)
}

async fn app_with_prices(store: &Store) -> Result<TestApp> {
    let app = with_store(TestApp::builder(), store).start().await?;
    app.feed("prices.csv", PRICES).apply().await?;
    Ok(app)
}

async fn publish(app: &TestApp, url: &str) -> Result<Value> {
    app.projector(&["publish", "--to", url, "--json"]).await?.success()?.json()
}

/// Publishes through a proxy, and waits until the publisher ends.
async fn publish_through(app: &TestApp, proxy: &Proxy, url: &str) -> Result<Output> {
    let env = [("AWS_ENDPOINT_URL", proxy.address.as_str())];
    app.run(Program::Projector, &["publish", "--to", url, "--json"], &env).await
}

/// Manifest of the newest version that a reader sees. Checks that the store has each of its files.
async fn read_newest(store: &Store, prefix: &str) -> Result<Option<Value>> {
    let Some(latest) = store.get(&format!("{prefix}/latest.json")).await? else { return Ok(None) };
    let latest: Value = serde_json::from_slice(&latest)?;
    let name = latest["data_version"].as_str().context("a version")?;
    let manifest = store.get(&format!("{prefix}/versions/{name}/manifest.json")).await?;
    let manifest: Value = serde_json::from_slice(&manifest.context("the manifest of the newest version")?)?;
    for file in files(&manifest) {
        let content = store.get(&format!("{prefix}/{}", file["path"].as_str().unwrap_or_default())).await?;
        let length = content.map(|content| Value::from(content.len()));
        assert_eq!(length.as_ref(), Some(&file["bytes"]), "{file}");
    }
    Ok(Some(manifest))
}

fn files(version: &Value) -> impl Iterator<Item = &Value> {
    let tables = version["tables"].as_array().into_iter().flatten();
    tables.flat_map(|table| table["files"].as_array()).flatten()
}

fn paths(version: &Value) -> BTreeSet<String> {
    files(version).filter_map(|file| Some(file["path"].as_str()?.to_owned())).collect()
}

/// Python with the modules that read the files, in the installation of moto. If it is missing, records the test as
/// skipped.
fn python_with_readers() -> Result<Option<PathBuf>> {
    let Some(moto) = optional_program("moto_server", Requirement::ObjectStore) else { return Ok(None) };
    let script = fs::read_to_string(moto)?;
    let python = PathBuf::from(script.lines().next().unwrap_or_default().trim_start_matches("#!"));
    let found = Command::new(&python).args(["-c", "import dds_client, duckdb, psycopg, pyarrow"]).output();
    if found.is_ok_and(|found| found.status.success()) {
        return Ok(Some(python));
    }
    skipped::record(Requirement::ObjectStore, "a module that reads the files is missing");
    Ok(None)
}

/// Writes a file, and the folders above it.
fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    fs::create_dir_all(path.parent().context("a folder")?)?;
    Ok(fs::write(path, content)?)
}

#[tokio::test]
async fn files_have_every_row_and_are_fetched_without_a_key() -> Result<()> {
    let Some(store) = Store::start("bucket").await? else { return Ok(()) };
    let url = "s3://bucket/market";
    let world = World::start_in(with_store(TestApp::builder(), &store), &[("FILES_URL", url)]).await?;
    let (status, error) = world.refused("/v1/files", &world.professional).await?;
    assert_eq!((status, &error["error"]), (404, &json!("No files are published by this service")));

    let published = publish(&world.app, url).await?;
    assert_eq!(published["is_new"], true);
    let again = publish(&world.app, url).await?;
    assert_eq!((&again["is_new"], &again["new_files"]), (&json!(false), &json!(0)));

    let answer = world.get("/v1/files").await?;
    assert_eq!((answer.status.as_u16(), answer.header("etag")), (200, None), "addresses are not cached");
    let first = answer.json()?;
    let quote = world.json("/v1/stocks/COLA/quote").await?;
    assert_eq!(first["meta"]["data_version"], quote["meta"]["data_version"]);
    let folder = world.app.folder().join("fetched");
    let client = harness::client(TIMEOUT)?;
    for file in files(&first["data"]) {
        let address = file["url"].as_str().context("an address")?;
        let content = client.get(address).send().await?.error_for_status()?.bytes().await?;
        write(&folder.join(file["path"].as_str().context("a path")?), content)?;
    }
    let name = first["data"]["data_version"].as_str().context("a version")?;
    for path in ["latest.json".to_owned(), format!("versions/{name}/manifest.json")] {
        let content = store.get(&format!("bucket/market/{path}")).await?.context("an object")?;
        write(&folder.join(path), content)?;
    }
    if let Some(python) = python_with_readers()? {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let run = |arguments: &[&OsStr]| -> Result<std::process::Output> {
            let mut command = Command::new(&python);
            command.args(arguments).env("PYTHONPATH", tests.join("../api/clients/python/src"));
            command.env("ANALYST_DATABASE_URL", world.app.endpoints().database_url_of("dds_analyst")?);
            command.env("DDS_API_URL", &world.api.base_url).env("DDS_API_KEY", &world.professional);
            Ok(command.env("PYTHONDONTWRITEBYTECODE", "1").output()?)
        };
        let client = ["-c".as_ref(), CLIENT.as_ref(), name.as_ref()];
        let read = run(&client)?;
        assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
        let compared = run(&[tests.join("analyst/parquet.py").as_ref(), folder.as_ref()])?;
        let [printed, errors] =
            [&compared.stdout, &compared.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(compared.status.success() && printed.contains("random rows as served"), "{printed}{errors}");
    }

    // A day adds only the files with its rows.
    let prices = "symbol,date,close\nCOLA,2024-06-17,51\n";
    world.app.feed("prices.csv", prices).today("2024-06-17").apply().await?;
    let second = publish(&world.app, url).await?;
    let newest = world.json("/v1/files").await?;
    assert_eq!(newest["data"]["data_version"], second["data_version"]);
    let (old, new) = (paths(&first["data"]), paths(&newest["data"]));
    assert_eq!(json!(new.difference(&old).count()), second["new_files"]);
    let earlier_years = new.intersection(&old).filter(|path| path.contains("/prices/")).count();
    assert_eq!(earlier_years, 6, "the prices of 2018 to 2023 are shared: {new:?}");
    let earlier = world.json(&format!("/v1/files?version={name}")).await?;
    assert_eq!(paths(&earlier["data"]), old);

    for (path, key, expected) in [
        ("/v1/files", &world.starter, 403),
        ("/v1/files?version=g9.9", &world.professional, 404),
        ("/v1/files?version=9", &world.professional, 400),
    ] {
        assert_eq!(world.refused(path, key).await?.0, expected, "{path}");
    }
    // Files that were published before a source was closed are not handed out.
    for (redistribution, expected) in [("no", 404), ("yes", 200)] {
        let licence = ["source", "set", "test", "--licence", "L", "--redistribution", redistribution];
        world.app.projector(&licence).await?.success()?;
        eventually(TIMEOUT, async || {
            let reply = world.get("/v1/files").await?;
            ensure!(reply.status == expected, "{}", reply.text());
            ensure!(expected == 200 || reply.text().contains("data of test"), "{}", reply.text());
            Ok(())
        })
        .await?;
    }
    drop(store);
    assert_eq!(world.refused("/v1/files", &world.professional).await?.0, 503);
    Ok(())
}

#[tokio::test]
async fn a_killed_publisher_leaves_nothing_that_a_reader_sees() -> Result<()> {
    let Some(store) = Store::start("bucket").await? else { return Ok(()) };
    let app = app_with_prices(&store).await?;
    let complete = publish(&app, "s3://bucket/whole").await?;
    // The manifest and the name of the newest version are the last two writes.
    let writes = usize::try_from(complete["new_files"].as_u64().context("a number")?)? + 2;
    for (number, is_forwarded) in (0..writes).flat_map(|number| [(number, false), (number, true)]) {
        let prefix = format!("bucket/killed-{number}-{is_forwarded}");
        let fault = if is_forwarded { Fault::After(number) } else { Fault::Before(number) };
        let proxy = Proxy::start(&store.address, fault).await?;
        let url = format!("s3://{prefix}");
        let env = [("AWS_ENDPOINT_URL", proxy.address.as_str())];
        let mut publisher = app.spawn_with(Program::Projector, &["publish", "--to", &url], &env).await?;
        let reached = tokio::time::timeout(TIMEOUT, proxy.wait_for_fault()).await;
        reached.with_context(|| format!("write {number}: {}", publisher.log()))?;
        publisher.kill9()?;
        let is_visible = read_newest(&store, &prefix).await?.is_some();
        assert_eq!(is_visible, number + 1 == writes && is_forwarded, "{prefix}");
        publish(&app, &url).await?;
        let newest = read_newest(&store, &prefix).await?.context("a version")?;
        assert_eq!(newest["data_version"], complete["data_version"]);
    }
    Ok(())
}

#[tokio::test]
async fn two_publishers_publish_a_version_once() -> Result<()> {
    let Some(store) = Store::start("bucket").await? else { return Ok(()) };
    let app = app_with_prices(&store).await?;
    let url = "s3://bucket/both";
    let (one, other) = tokio::try_join!(publish(&app, url), publish(&app, url))?;
    assert_eq!(one["data_version"], other["data_version"]);
    assert_ne!(one["is_new"], other["is_new"], "{one} {other}");
    assert!(read_newest(&store, "bucket/both").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn a_conflicting_write_is_never_replaced() -> Result<()> {
    let Some(store) = Store::start("bucket").await? else { return Ok(()) };
    let app = app_with_prices(&store).await?;
    publish(&app, "s3://bucket/good").await?;
    let good = read_newest(&store, "bucket/good").await?.context("a version")?;
    let name = good["data_version"].as_str().context("a name")?;

    // The name of the newest version changes between the publisher's read and its write.
    for (prefix, position, newest) in [("older", 0, name), ("newer", 1_000_000, "g9.9")] {
        let text = json!({ "data_version": "g9.9", "position": position }).to_string();
        let proxy = Proxy::start(&store.address, Fault::Conflict { path: "latest.json", text }).await?;
        publish_through(&app, &proxy, &format!("s3://bucket/{prefix}")).await?.success()?;
        let latest = store.get(&format!("bucket/{prefix}/latest.json")).await?.context("a version")?;
        assert_eq!(serde_json::from_slice::<Value>(&latest)?["data_version"], newest, "{prefix}");
    }

    // Another database has a version of this name.
    let mut other = good.clone();
    other["tables"][0]["rows"] = json!(1_000);
    let path = format!("bucket/other/versions/{name}/manifest.json");
    store.put(&path, &other.to_string()).await?;
    let refused = app.projector(&["publish", "--to", "s3://bucket/other"]).await?;
    assert!(refused.code == 1 && refused.stderr.contains("other data of this name"), "{}", refused.stderr);
    assert!(read_newest(&store, "bucket/other").await?.is_none());
    let unchanged = store.get(&path).await?.context("a manifest")?;
    assert_eq!(serde_json::from_slice::<Value>(&unchanged)?, other);

    // The newest version is another database's.
    other["sync_from"] = json!("ffffffff.1");
    store.put(&format!("bucket/foreign/versions/{name}/manifest.json"), &other.to_string()).await?;
    let latest = json!({ "data_version": name, "position": 1 }).to_string();
    store.put("bucket/foreign/latest.json", &latest).await?;
    let refused = app.projector(&["publish", "--to", "s3://bucket/foreign"]).await?;
    assert!(refused.code == 1 && refused.stderr.contains("restored database"), "{}", refused.stderr);
    Ok(())
}

/// Sets the time of the last change of a file, or of all files in a folder, to `age` before now.
fn set_age(path: &Path, age: Duration) -> Result<()> {
    if path.is_dir() {
        return fs::read_dir(path)?.try_for_each(|entry| set_age(&entry?.path(), age));
    }
    Ok(File::options().write(true).open(path)?.set_modified(SystemTime::now() - age)?)
}

#[tokio::test]
async fn retention_removes_old_versions_and_never_a_named_file() -> Result<()> {
    let app = TestApp::start().await?;
    let folder = app.folder().join("published");
    let url = format!("file:{}", folder.display());
    let mut versions = Vec::new();
    for close in ["60", "61", "62"] {
        app.feed("prices.csv", PRICES.replace("63", close)).apply().await?;
        let published = publish(&app, &url).await?;
        let name = published["data_version"].as_str().context("a version")?;
        versions.push(folder.join(format!("versions/{name}/manifest.json")));
    }
    let named =
        |path: &Path| -> Result<BTreeSet<String>> { Ok(paths(&serde_json::from_slice(&fs::read(path)?)?)) };
    let oldest = named(&versions[0])?;
    let others: BTreeSet<String> = &named(&versions[1])? | &named(&versions[2])?;
    let (shared, only_oldest) = (&oldest & &others, &oldest - &others);
    assert!(!shared.is_empty() && !only_oldest.is_empty(), "{oldest:?} {others:?}");
    set_age(&folder, 60 * DAY)?;
    set_age(&versions[1], 40 * DAY)?;
    set_age(&versions[2], 20 * DAY)?;
    let unfinished = folder.join("data/prices/of-another-publisher.parquet");
    fs::write(&unfinished, "PAR1")?;

    let arguments = ["publish", "--to", &url, "--keep", "30d", "--json"];
    let removed = app.projector(&arguments).await?.success()?.json()?;
    assert_eq!((&removed["is_new"], &removed["removed_versions"]), (&json!(false), &json!(1)));
    assert_eq!(removed["removed_files"], json!(only_oldest.len()));
    // The second version was replaced 20 days ago, so a client may still read it.
    assert_eq!(versions.iter().map(|path| path.exists()).collect::<Vec<_>>(), [false, true, true]);
    assert!(others.iter().all(|path| folder.join(path).exists()) && unfinished.exists());
    assert!(!only_oldest.iter().any(|path| folder.join(path).exists()));
    Ok(())
}

#[tokio::test]
async fn a_follower_publishes_every_newer_version() -> Result<()> {
    let app = TestApp::start().await?;
    app.feed("prices.csv", PRICES).apply().await?;
    let folder = app.folder().join("followed");
    let url = format!("file:{}", folder.display());
    let command = ["publish", "--to", &url, "--follow", "--every", "1s"];
    let mut follower = app.spawn(Program::Projector, &command).await?;
    let versions = || fs::read_dir(folder.join("versions")).map_or(0, Iterator::count);
    for (published, close) in [(1, "64"), (2, "65")] {
        eventually(TIMEOUT, async || {
            ensure!(versions() == published && folder.join("latest.json").exists(), "{}", follower.log());
            Ok(())
        })
        .await?;
        app.feed("prices.csv", PRICES.replace("63", close)).apply().await?;
    }
    assert!(follower.stop(Signal::TERM, TIMEOUT).await?.success(), "{}", follower.log());
    Ok(())
}
