//! Prometheus metrics: documented names, base units, and values that agree with the work done.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Program, TestApp, client, eventually};
use reqwest::Method;

use crate::api_world::World;

const PATIENCE: Duration = Duration::from_secs(120);

/// Number of valid rows in [`prices_with_one_bad_row`].
const GOOD_ROWS: f64 = 99.0;

fn prices_with_one_bad_row() -> String {
    let rows: String = (1..=99).map(|number| format!("AAA{number},2024-06-28,7\n")).collect();
    format!("symbol,date,close\n{rows}AAA1,someday,7\n")
}

/// Metrics of a program. A key of `values` is a metric's name with labels, exactly as in `text`.
pub(crate) struct Scrape {
    text: String,
    values: BTreeMap<String, f64>,
}

pub(crate) async fn scrape(address: &str) -> Result<Scrape> {
    let reply = client(PATIENCE)?.get(format!("http://{address}/metrics")).send().await?;
    let kind = reply.headers().get("content-type").context("a type")?.to_str()?.to_owned();
    ensure!(reply.status() == 200 && kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = reply.text().await?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let values = lines.map(|line| {
        let (name, value) = line.rsplit_once(' ').with_context(|| line.to_owned())?;
        Ok((name.to_owned(), value.parse()?))
    });
    Ok(Scrape { values: values.collect::<Result<_>>()?, text })
}

impl Scrape {
    pub(crate) fn value(&self, name: &str) -> Result<f64> {
        self.values.get(name).copied().with_context(|| format!("no {name} in\n{}", self.text))
    }

    /// Fails if a metric lacks help text, has another type, or has a unit such as `_ms`.
    #[track_caller]
    fn has(&self, kind: &str, names: &[&str]) {
        for name in names {
            assert!(self.text.contains(&format!("# TYPE {name} {kind}\n")), "{name}: {}", self.text);
            assert!(self.text.contains(&format!("# HELP {name} ")), "{name}");
            let in_base_units = ["_milliseconds", "_ms", "_kilobytes", "_percent"];
            assert!(!in_base_units.iter().any(|unit| name.ends_with(unit)), "{name}");
        }
    }
}

#[tokio::test]
async fn the_api_counts_every_call_by_route_and_names_no_client() -> Result<()> {
    let world = World::start().await?;
    let figures = world.app.free_address()?;
    let api = world.app.api_serve_with(&[("METRICS_LISTEN", &figures)]).await?;
    for path in ["/v1/stocks/COLA/quote", "/v1/stocks/COLA/quote", "/v1/stocks/FUND/quote", "/v1/nothing"] {
        api.get(path, Some(&world.free)).await?;
    }
    api.get("/v1/stocks/COLA/quote", Some("dds_live_not_a_key")).await?;
    api.get("/v1/bulk/prices?date=2024-06-14", Some(&world.free)).await?;
    api.send(Method::from_bytes(b"BREW")?, "/v1/stocks", &[]).await?;
    assert_eq!(api.get("/metrics", None).await?.status, 404, "figures are not public");

    let seen = scrape(&figures).await?;
    seen.has(
        "histogram",
        &[
            "dds_http_request_duration_seconds",
            "dds_admission_batch_calls",
            "dds_admission_statement_duration_seconds",
        ],
    );
    seen.has(
        "counter",
        &[
            "dds_admission_decided_total",
            "dds_address_throttled_total",
            "dds_cache_hits_total",
            "dds_cache_misses_total",
        ],
    );
    seen.has(
        "gauge",
        &[
            "dds_admission_queue_calls",
            "dds_connections",
            "dds_pool_waiting",
            "dds_pool_in_use",
            "dds_server_up",
        ],
    );
    let quotes =
        r#"dds_http_request_duration_seconds_count{method="GET",route="/v1/stocks/{symbol}/quote",status="#;
    assert_eq!(seen.value(&format!("{quotes}\"200\"}}"))?, 3.0);
    assert_eq!(seen.value(&format!("{quotes}\"401\"}}"))?, 1.0);
    let unrouted = r#"dds_http_request_duration_seconds_count{method="GET",route="none",status="404"}"#;
    assert_eq!(seen.value(unrouted)?, 2.0, "the unknown path, and /metrics");
    let brewed = r#"dds_http_request_duration_seconds_count{method="other",route="/v1/stocks",status="#;
    assert!(seen.text.contains(brewed), "{}", seen.text);
    for (outcome, calls) in [("passed", 4.0), ("tier", 1.0), ("undecided", 0.0), ("rate", 0.0)] {
        let name = format!("dds_admission_decided_total{{outcome=\"{outcome}\"}}");
        assert_eq!(seen.value(&name)?, calls, "{outcome}: {}", seen.text);
    }
    assert_eq!(
        seen.value("dds_admission_batch_calls_sum")?,
        seen.value("dds_admission_batch_calls_sum")?.round()
    );
    assert!(seen.value("dds_cache_hits_total")? + seen.value("dds_cache_misses_total")? >= 3.0);
    for word in ["COLA", "FUND", "@example.com", &world.free, "BREW", "not_a_key", "nothing"] {
        assert!(!seen.text.contains(word), "{word} in {}", seen.text);
    }
    Ok(())
}

#[tokio::test]
async fn buckets_go_from_a_quarter_of_a_millisecond_to_ten_seconds() -> Result<()> {
    let app = TestApp::start().await?;
    let figures = app.free_address()?;
    let api = app.api_serve_with(&[("METRICS_LISTEN", &figures)]).await?;
    api.get("/v1/health", None).await?;
    let seen = scrape(&figures).await?;
    let bucket =
        r#"dds_http_request_duration_seconds_bucket{method="GET",route="/v1/health",status="200",le=""#;
    let limits: Vec<&str> = seen.values.keys().filter_map(|name| name.strip_prefix(bucket)).collect();
    for limit in ["0.00025\"}", "0.001\"}", "10\"}", "+Inf\"}"] {
        assert!(limits.contains(&limit), "{limits:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_projector_tells_how_far_it_is_and_how_new_every_feed_is() -> Result<()> {
    let app = TestApp::start().await?;
    let feed = app.folder().join("prices.csv");
    std::fs::write(&feed, prices_with_one_bad_row())?;
    let load = ["load", &feed.display().to_string(), "--source", "eod", "--today", "2024-06-30"];
    assert_eq!(app.ingest(&load).await?.code, 1, "one row is refused");
    let figures = app.free_address()?;
    let projector = app.spawn_with(Program::Projector, &["run"], &[("METRICS_LISTEN", &figures)]).await?;
    let seen = eventually(PATIENCE, async || {
        let seen = scrape(&figures).await.with_context(|| projector.log())?;
        ensure!(seen.value("dds_projection_applied_sequence")? > 0.0, "nothing applied");
        ensure!(seen.value("dds_log_pending")? == 0.0, "not all applied");
        ensure!(seen.value(r#"dds_feed_rows_total{kind="price",source="eod"}"#)? == GOOD_ROWS, "no feed");
        Ok(seen)
    })
    .await?;
    seen.has(
        "gauge",
        &[
            "dds_projection_applied_sequence",
            "dds_projection_log_last_sequence",
            "dds_projection_lag_seconds",
            "dds_projection_as_of_timestamp_seconds",
            "dds_dead_letters",
            "dds_quarantined_rows",
            "dds_lease_held",
            "dds_generation_info",
            "dds_feed_last_load_timestamp_seconds",
            "dds_feed_last_session_timestamp_seconds",
            "dds_market_last_session_timestamp_seconds",
            "dds_log_bytes",
            "dds_log_pending",
            "dds_log_replicas",
            "dds_database_bytes",
            "dds_server_up",
        ],
    );
    seen.has(
        "counter",
        &["dds_projection_derived_securities_total", "dds_feed_rows_total", "dds_feed_rejects_total"],
    );
    seen.has("histogram", &["dds_projection_batch_duration_seconds"]);
    let last = seen.value("dds_projection_log_last_sequence")?;
    assert_eq!(seen.value("dds_projection_applied_sequence")?, last);
    // 2024-06-28, at midnight UTC.
    let newest = 1_719_532_800.0;
    assert_eq!(seen.value("dds_projection_as_of_timestamp_seconds")?, newest);
    let labels = r#"{kind="price",source="eod"}"#;
    assert_eq!(seen.value(&format!("dds_feed_last_session_timestamp_seconds{labels}"))?, newest);
    assert_eq!(seen.value(r#"dds_feed_rejects_total{kind="reject",source="eod"}"#)?, 1.0);
    assert_eq!(seen.value(r#"dds_lease_held{fact_set="facts"}"#)?, 1.0);
    assert!(
        seen.text.contains(r#"dds_generation_info{generation="1","#)
            && seen.text.contains(r#"state="served"} 1"#)
    );
    assert!(!seen.text.contains("AAA"), "no symbol is a label");

    let health = [("METRICS_LISTEN", figures.as_str())];
    let well = app.run(Program::Projector, &["health"], &health).await?;
    assert_eq!((well.code, well.stdout.trim()), (0, r#"{"status":"ok"}"#), "{}", well.stderr);
    drop(projector);
    assert_eq!(app.run(Program::Projector, &["health"], &health).await?.code, 3);
    Ok(())
}

#[tokio::test]
async fn a_watch_tells_what_it_loaded() -> Result<()> {
    let app = TestApp::start().await?;
    let (figures, folder) = (app.free_address()?, app.folder().join("in"));
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("prices.csv"), prices_with_one_bad_row())?;
    std::fs::write(folder.join("refused.csv"), "no,feed\n1,2\n")?;
    let shown = folder.display().to_string();
    let arguments = ["watch", &shown, "--source", "eod", "--settle", "0s", "--every", "1s"];
    let watch = app.spawn_with(Program::Ingest, &arguments, &[("METRICS_LISTEN", &figures)]).await?;
    let seen = eventually(PATIENCE, async || {
        let seen = scrape(&figures).await.with_context(|| watch.log())?;
        ensure!(seen.value(r#"dds_feed_rows_total{kind="price",source="eod"}"#)? == GOOD_ROWS, "not loaded");
        ensure!(seen.value("dds_feed_refused_files_total")? == 1.0, "not refused");
        Ok(seen)
    });
    let seen = seen.await?;
    assert_eq!(seen.value(r#"dds_feed_rejects_total{kind="reject",source="eod"}"#)?, 1.0);
    seen.has("gauge", &["dds_feed_last_load_timestamp_seconds"]);
    let health = app.run(Program::Ingest, &["health"], &[("METRICS_LISTEN", &figures)]).await?;
    assert_eq!(health.code, 0, "{}", health.stderr);
    Ok(())
}

#[tokio::test]
async fn the_apis_health_is_an_exit_code() -> Result<()> {
    let app = TestApp::start().await?;
    let api = app.api_serve().await?;
    let address = api.base_url.trim_start_matches("http://").to_owned();
    let well = app.api(&["health", "--listen", &address]).await?;
    assert!(well.code == 0 && well.stdout.contains("\"postgres\":\"ok\""), "{well:?}");
    drop(api);
    assert_eq!(app.api(&["health", "--listen", &address]).await?.code, 3);
    Ok(())
}
