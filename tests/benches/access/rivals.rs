//! Rivals: simple servers for comparison with the API. Each runs as another process of this benchmark program.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::NaiveDate;
use clap::Args;
use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use harness::{TestApp, eventually};
use rust_decimal::Decimal;
use serde::Serialize;
use sha2::{Digest, Sha256};
use tokio_postgres::NoTls;

/// Number of database connections of the naive design.
const POOL: usize = 16;
/// Maximum number of connections that wait to be accepted. It is the same as in the API.
const BACKLOG: u32 = 4_096;

/// Arguments with which the benchmark starts its own program as a rival server.
#[derive(Debug, Args)]
pub(crate) struct RivalArguments {
    #[arg(long, hide = true)]
    static_bytes: Option<usize>,
    #[arg(long, hide = true)]
    naive_database: Option<String>,
    #[arg(long, hide = true)]
    port_file: Option<std::path::PathBuf>,
}

impl RivalArguments {
    pub(crate) fn is_asked(&self) -> bool {
        self.static_bytes.is_some() || self.naive_database.is_some()
    }
}

pub(crate) struct Rival {
    pub(crate) address: String,
    process: Child,
}

impl Rival {
    pub(crate) async fn start(app: &TestApp, arguments: &[&str]) -> Result<Rival> {
        Rival::start_under(&[], app, arguments).await
    }

    /// Starts a rival under another program such as callgrind. `runner` is the command line of the other program. With
    /// an empty `runner`, the rival runs directly.
    pub(crate) async fn start_under(runner: &[String], app: &TestApp, arguments: &[&str]) -> Result<Rival> {
        let port_file = app.folder().join("rival-port");
        let _ = std::fs::remove_file(&port_file);
        let this = std::env::current_exe()?.into_os_string();
        let mut words = runner.iter().map(Into::into).chain([this]);
        let process = Command::new(words.next().context("a program")?)
            .args(words)
            .args(arguments)
            .arg("--port-file")
            .arg(&port_file)
            .stdin(Stdio::null())
            .spawn()?;
        let address = eventually(Duration::from_secs(60), async || Ok(std::fs::read_to_string(&port_file)?));
        Ok(Rival { address: address.await?, process })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) async fn serve(arguments: RivalArguments) -> Result<()> {
    let router = match (arguments.static_bytes, arguments.naive_database) {
        (Some(bytes), _) => {
            let body = bytes::Bytes::from("x".repeat(bytes));
            Router::new().fallback(get(async move || ([(header::CONTENT_TYPE, "application/json")], body)))
        }
        (None, database) => naive(&database.context("a database")?)?,
    };
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    let listener = socket.listen(BACKLOG)?;
    let (file, address) = (arguments.port_file.context("--port-file")?, listener.local_addr()?.to_string());
    let draft = file.with_extension("draft");
    std::fs::write(&draft, address)?;
    std::fs::rename(draft, file)?;
    Ok(axum::serve(listener, router).await?)
}

fn naive(database: &str) -> Result<Router> {
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_config(database.parse()?, NoTls, manager);
    let pool = Pool::builder(manager).max_size(POOL).build()?;
    Ok(Router::new()
        .route("/v1/stocks/{symbol}/quote", get(quote))
        .route("/rows/{symbol}", get(rows))
        .with_state(pool))
}

struct Failure(anyhow::Error);

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, format!("{:#}", self.0)).into_response()
    }
}

/// Answers a request with three statements: look-up of the key, update of the usage counter, and query of the quote.
async fn quote(
    State(pool): State<Pool>,
    Path(symbol): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let client = pool.get().await?;
    let key = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let hash = Sha256::digest(key.trim_start_matches("Bearer ").as_bytes()).to_vec();
    let known = client
        .prepare_cached("select a.id, t.monthly_quota from accounts.api_keys k join accounts.accounts a on a.id = k.account_id join accounts.tiers t using (tier) where k.hash = $1 and k.revoked_at is null")
        .await?;
    let Some(account) = client.query_opt(&known, &[&hash]).await? else {
        return Ok(StatusCode::UNAUTHORIZED.into_response());
    };
    let (id, quota): (i64, i64) = (account.try_get(0)?, account.try_get(1)?);
    let count = client
        .prepare_cached("update accounts.limiter set used = used + 1 where account_id = $1 returning used")
        .await?;
    let used: i64 = client.query_one(&count, &[&id]).await?.try_get(0)?;
    if used > quota {
        return Ok(StatusCode::TOO_MANY_REQUESTS.into_response());
    }
    let data = client.prepare_cached("select to_json(q) from read_g1.quotes q where q.symbol = $1").await?;
    let body: serde_json::Value = client.query_one(&data, &[&symbol]).await?.try_get(0)?;
    Ok(axum::Json(serde_json::json!({ "data": body })).into_response())
}

#[derive(Serialize)]
struct Bar {
    date: NaiveDate,
    open: Decimal,
    high: Decimal,
    low: Decimal,
    close: Decimal,
    volume: i64,
}

async fn rows(State(pool): State<Pool>, Path(symbol): Path<String>) -> Result<Response, Failure> {
    let client = pool.get().await?;
    let select = client
        .prepare_cached("select date, open, high, low, close, volume from public.bar_rows where symbol = $1 order by date")
        .await?;
    let bars = client.query(&select, &[&symbol]).await?;
    let bar = |row: &tokio_postgres::Row| -> Result<Bar, tokio_postgres::Error> {
        Ok(Bar {
            date: row.try_get(0)?,
            open: row.try_get(1)?,
            high: row.try_get(2)?,
            low: row.try_get(3)?,
            close: row.try_get(4)?,
            volume: row.try_get(5)?,
        })
    };
    Ok(axum::Json(bars.iter().map(bar).collect::<Result<Vec<_>, _>>()?).into_response())
}
