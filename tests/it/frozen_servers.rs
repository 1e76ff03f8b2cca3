//! Tests with frozen servers that accept connections but do not reply: every command ends and names the server.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use harness::{Program, Servers, Signal, TestApp, eventually};

const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn every_command_ends_when_a_server_is_frozen_and_names_it() -> Result<()> {
    let servers = Servers::private().await?;
    let app = TestApp::builder().servers(&servers).start().await?;
    app.feed("prices.csv", "symbol,date,close\nAAA,2024-06-27,6\n").apply().await?;
    let metrics = app.free_address()?;
    let listen = [("METRICS_LISTEN", metrics.as_str())];
    let projector = app.spawn_with(Program::Projector, &["run"], &listen).await?;
    let has_health = async |code: i32, text: &str| {
        eventually(PATIENCE, async || {
            let health = app.run(Program::Projector, &["health"], &listen).await?;
            ensure!(health.code == code && health.stdout.contains(text), "{health:?}");
            Ok(())
        })
        .await
    };
    has_health(0, "ok").await?;

    servers.postgres.freeze().await?;
    let commands: [&[&str]; 9] = [
        &["status"],
        &["audit"],
        &["explain", "AAA"],
        &["quarantine", "list"],
        &["dead-letters", "list"],
        &["list"],
        &["policy", "list"],
        &["run", "--until-caught-up"],
        &["backup", "kept"],
    ];
    let ended = try_join_all(commands.map(async |arguments| {
        let output = tokio::time::timeout(PATIENCE, app.projector(arguments)).await?;
        let output = output.with_context(|| format!("{arguments:?}"))?;
        ensure!(output.code == 3, "{arguments:?}: {output:?}");
        let text = format!("{}{}", output.stdout, output.stderr);
        ensure!(text.contains("Postgres") && text.contains("does not answer"), "{arguments:?}: {output:?}");
        anyhow::Ok(output)
    }));
    let ended = ended.await?;
    assert!(ended[0].stdout.contains("log          ends at sequence"), "{}", ended[0].stdout);
    has_health(1, "Postgres does not answer").await?;
    servers.postgres.thaw().await?;
    has_health(0, "ok").await?;

    // Without NATS, the projector still runs, and `projector status` reports the stored facts.
    servers.nats.signal(Signal::STOP).await?;
    let status = app.projector(&["status"]).await?;
    let pid = format!("projector    {}@", projector.pid());
    assert_eq!(status.code, 3, "{status:?}");
    for text in ["log          unknown: ", "NATS", "facts        applied to sequence", &pid] {
        assert!(status.stdout.contains(text), "{text}: {}", status.stdout);
    }
    eventually(PATIENCE, async || {
        ensure!(projector.log().contains("transient failure"), "{}", projector.log_tail(5));
        Ok(())
    })
    .await?;
    let status = app.projector(&["status"]).await?;
    assert!(status.stdout.contains(&pid), "{}", status.stdout);
    servers.nats.signal(Signal::CONT).await?;
    has_health(0, "ok").await
}
