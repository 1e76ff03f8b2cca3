//! Secrets and TLS. Cursors survive a change of the secret that signs them, and the programs connect with TLS.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Certificate, Program, Servers, TestApp, eventually};

use crate::api_world::World;

const PATIENCE: Duration = Duration::from_secs(120);

fn role_url(app: &TestApp, role: &str, password: &str, tls: &str) -> Result<String> {
    let url = &app.endpoints().database_url;
    let (_, place) = url.split_once('@').context("a user in the address")?;
    Ok(format!("postgres://{role}:{password}@{place}?sslmode={tls}"))
}

#[tokio::test]
async fn programs_reach_servers_that_demand_tls_and_check_their_certificates() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    let Some(certificate) = Certificate::make(app.folder())? else { return Ok(()) };
    app.sql("alter role dds_api password 'api-1'", &[]).await?;
    app.sql("alter role dds_projector password 'projector-1'", &[]).await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-28,7\n").load().await?;
    servers.postgres.demand_tls(&certificate).await?;
    servers.nats.demand_tls(&certificate).await?;

    let trusted = certificate.certificate.display().to_string();
    let log = servers.nats.url().replace("nats://", "tls://");
    let projector = role_url(&app, "dds_projector", "projector-1", "require")?;
    let environment =
        [("SSL_CERT_FILE", trusted.as_str()), ("NATS_URL", &log), ("PROJECTOR_DATABASE_URL", &projector)];
    app.run(Program::Ingest, &["runs"], &environment).await?.success()?;
    app.run(Program::Projector, &["run", "--until-caught-up"], &environment).await?.success()?;
    let url = role_url(&app, "dds_api", "api-1", "require")?;
    let serving = [("SSL_CERT_FILE", trusted.as_str()), ("NATS_URL", &log), ("API_DATABASE_URL", &url)];
    let api = app.api_serve_with(&serving).await?;
    let key = app.key("free").await?;
    assert_eq!(api.get("/v1/stocks/AAA/quote", Some(&key)).await?.status, 200);

    // Postgres refuses a connection without TLS, and the programs refuse a certificate that they do not trust.
    let plain = role_url(&app, "dds_projector", "projector-1", "disable")?;
    let mut refused = environment;
    refused[2].1 = &plain;
    let output = app.run(Program::Projector, &["status"], &refused).await?;
    assert!(output.code != 0, "{}", output.stdout);
    let untrusting = [("NATS_URL", log.as_str()), ("PROJECTOR_DATABASE_URL", &projector)];
    let output = app.run(Program::Projector, &["status"], &untrusting).await?;
    assert!(output.code == 3 && !output.stderr.contains("projector-1"), "{}", output.stderr);
    assert_eq!(app.run(Program::Ingest, &["runs"], &untrusting).await?.code, 3);

    // The password changes. A connected instance continues, and an instance with the new password replaces it.
    app.sql("alter role dds_api password 'api-2'", &[]).await?;
    assert_eq!(api.get("/v1/stocks/AAA/quote", Some(&key)).await?.status, 200);
    let url = role_url(&app, "dds_api", "api-2", "require")?;
    let next = app
        .api_serve_with(&[("SSL_CERT_FILE", &trusted), ("NATS_URL", &log), ("API_DATABASE_URL", &url)])
        .await?;
    assert_eq!(api.get("/v1/stocks/AAA/quote", Some(&key)).await?.status, 200);
    assert_eq!(next.get("/v1/stocks/AAA/quote", Some(&key)).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn cursors_of_the_secret_before_go_on_after_a_change() -> Result<()> {
    let world = World::start().await?;
    let cursor = |page: &serde_json::Value| {
        page.pointer("/meta/next_cursor").and_then(|cursor| cursor.as_str()).map(str::to_owned)
    };
    let first = world.json("/v1/stocks?limit=1").await?;
    let path = format!("/v1/stocks?limit=1&cursor={}", cursor(&first).context("a next page")?);
    let (old, new) = ("0".repeat(64), "1".repeat(64));
    let both = [("CURSOR_SECRET", new.as_str()), ("CURSOR_SECRET_PREVIOUS", &old)];
    let changed = world.app.api_serve_with(&both).await?;
    let second = changed.get(&path, Some(&world.free)).await?;
    assert_eq!(second.status, 200, "{}", second.text());
    assert_eq!(second.json()?["data"], world.json(&path).await?["data"]);
    let third = cursor(&second.json()?).context("a third page")?;
    let path = format!("/v1/stocks?limit=1&cursor={third}");
    assert_eq!(world.get(&path).await?.status, 400, "the new secret is not the old one");

    let without = world.app.api_serve_with(&[("CURSOR_SECRET", &new)]).await?;
    let reached = eventually(PATIENCE, async || {
        let reply = without.get(&path, Some(&world.free)).await?;
        ensure!(reply.status == 200, "{}", reply.text());
        Ok(())
    });
    reached.await
}

#[tokio::test]
async fn a_request_goes_on_under_the_id_of_its_trace() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve_with(&[("LOG_FORMAT", "json"), ("RUST_LOG", "debug")]).await?;
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = ("traceparent", format!("00-{id}-00f067aa0ba902b7-01"));
    let reply = api.send(reqwest::Method::GET, "/v1/health", &[parent]).await?;
    assert_eq!(reply.header("x-request-id"), Some(id));
    let logged = eventually(PATIENCE, async || {
        let log = api.process.log();
        let line = log.lines().find(|line| line.contains(id)).with_context(|| log.clone())?;
        Ok(serde_json::from_str::<serde_json::Value>(line)?)
    });
    assert_eq!(logged.await?["fields"]["request_id"], id);
    let broken = [("traceparent", "00-zz-1-01".to_owned())];
    let reply = api.send(reqwest::Method::GET, "/v1/health", &broken).await?;
    assert_ne!(reply.header("x-request-id"), Some("zz"));
    Ok(())
}
