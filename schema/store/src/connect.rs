//! Connections to the hosts of a URL. Each host has a time limit for connecting and signing in.
//!
//! A host that did not reply in time is tried last until `UNRESPONSIVE_FOR` has passed. Otherwise a frozen server would
//! delay every attempt.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};

use crate::error::{DbError, error_chain};
use crate::tls::{self, MakeRustlsConnect};

/// Time limit for the only host of a URL without `connect_timeout`.
const ONLY_HOST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for each host if the URL has several hosts and no `connect_timeout`.
const HOST_TIMEOUT: Duration = Duration::from_secs(3);
/// Time limit for a host in the period [`UNRESPONSIVE_FOR`] after an attempt without a reply. It applies to URLs with
/// several hosts and no `connect_timeout`.
const UNRESPONSIVE_HOST_TIMEOUT: Duration = Duration::from_secs(1);
/// Period after an attempt without a reply. During this period, the host is tried after all other hosts.
const UNRESPONSIVE_FOR: Duration = Duration::from_secs(30);
const WATCH_INTERVAL: Duration = Duration::from_secs(2);
/// Longest wait for the reply to a check.
const WATCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Hosts that did not reply in time, each with the time of the failed attempt.
static UNRESPONSIVE_HOSTS: LazyLock<Mutex<HashMap<String, Instant>>> = LazyLock::new(Mutex::default);

/// Driver of a connection: a future that must be polled, so that the connection sends and receives data.
pub type ConnectionDriver = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Opens a connection. Its driver task runs until the client is dropped.
///
/// # Errors
/// [`DbError::Unreachable`] if every host refused the connection. [`DbError::Unanswered`] if no host accepted it, and
/// at least one host did not complete the sign-in in time.
pub async fn connect(config: &Config) -> Result<Client, DbError> {
    let (client, driver) = open(config, &tls::tls_connector(config)?).await?;
    tokio::spawn(async move {
        if let Err(error) = driver.await {
            tracing::warn!(error = %error_chain(&error), "postgres connection ended");
        }
    });
    Ok(client)
}

/// Opens a connection to the first host that accepts it.
///
/// # Errors
/// [`DbError::Unreachable`] or [`DbError::Unanswered`], as described at [`connect`].
pub async fn open(config: &Config, tls: &MakeRustlsConnect) -> Result<(Client, ConnectionDriver), DbError> {
    let (client, driver, _) = open_host(config, tls).await?;
    Ok((client, driver))
}

/// Opens a connection as [`open`] does. Also returns the index of the connected host in the URL.
///
/// # Errors
/// [`DbError::Unreachable`] or [`DbError::Unanswered`], as described at [`connect`].
pub async fn open_host(
    config: &Config,
    tls: &MakeRustlsConnect,
) -> Result<(Client, ConnectionDriver, usize), DbError> {
    let started = Instant::now();
    let hosts = hosts_in_order(config);
    let is_only = hosts.len() == 1;
    let (mut refusal, mut is_unanswered) = (None, false);
    for host in hosts {
        let place = place_of(&host.config);
        let limit = match config.get_connect_timeout() {
            Some(limit) => *limit,
            None if is_only => ONLY_HOST_TIMEOUT,
            None if host.is_unresponsive => UNRESPONSIVE_HOST_TIMEOUT,
            None => HOST_TIMEOUT,
        };
        match tokio::time::timeout(limit, host.config.connect(tls.clone())).await {
            Ok(Ok((client, driver))) => {
                UNRESPONSIVE_HOSTS.lock().remove(&place);
                return Ok((client, driver, host.index));
            }
            Ok(Err(source)) => refusal = Some(DbError::Unreachable { place, source }),
            Err(_) => {
                is_unanswered = true;
                UNRESPONSIVE_HOSTS.lock().insert(place, Instant::now());
            }
        }
    }
    match refusal {
        Some(refusal) if !is_unanswered => Err(refusal),
        _ => Err(DbError::Unanswered { place: place_of(config), seconds: started.elapsed().as_secs() }),
    }
}

/// Sends an empty query every `WATCH_INTERVAL` on a separate connection. Returns an error as soon as the server does
/// not reply in time. A caller can thus distinguish a frozen server from a slow statement.
pub async fn watch_server(config: &Config) -> DbError {
    let mut watching: Option<Client> = None;
    loop {
        tokio::time::sleep(WATCH_INTERVAL).await;
        let client = match watching.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => match connect(config).await {
                Ok(client) => client,
                Err(error @ DbError::Unanswered { .. }) => return error,
                // Only an unanswered connection is reported. Other errors also occur on the caller's own connection,
                // and the caller reports them.
                Err(_) => continue,
            },
        };
        if tokio::time::timeout(WATCH_TIMEOUT, client.simple_query("")).await.is_err() {
            return DbError::Unanswered { place: place_of(config), seconds: WATCH_TIMEOUT.as_secs() };
        }
        watching = Some(client);
    }
}

struct HostConfig {
    index: usize,
    config: Config,
    is_unresponsive: bool,
}

/// Hosts in the order in which they are tried. Hosts that recently failed to reply in time come last.
fn hosts_in_order(config: &Config) -> Vec<HostConfig> {
    let count = count_hosts(config);
    let one = |index| HostConfig { index, config: config_of_host(config, index), is_unresponsive: false };
    let mut hosts: Vec<HostConfig> = (0..count.max(1)).map(one).collect();
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        let random = RandomState::new();
        hosts.sort_by_cached_key(|host| random.hash_one(place_of(&host.config)));
    }
    let unresponsive = UNRESPONSIVE_HOSTS.lock();
    for host in &mut hosts {
        let failed_at = unresponsive.get(&place_of(&host.config));
        host.is_unresponsive = failed_at.is_some_and(|at| at.elapsed() < UNRESPONSIVE_FOR);
    }
    hosts.sort_by_key(|host| host.is_unresponsive);
    hosts
}

fn count_hosts(config: &Config) -> usize {
    config.get_hosts().len().max(config.get_hostaddrs().len())
}

/// Connection settings with only the host at `index`. The other settings are copied one by one, because a `Config`
/// cannot remove a host.
pub fn config_of_host(config: &Config, index: usize) -> Config {
    if count_hosts(config) <= 1 {
        return config.clone();
    }
    let mut one = Config::new();
    one.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding());
    macro_rules! copy_settings {
        ($($set:ident from $get:ident),*) => {
            $(if let Some(value) = config.$get() {
                one.$set(value.to_owned());
            })*
        };
    }
    copy_settings!(
        user from get_user, password from get_password, dbname from get_dbname, options from get_options,
        application_name from get_application_name, connect_timeout from get_connect_timeout,
        tcp_user_timeout from get_tcp_user_timeout, keepalives_interval from get_keepalives_interval,
        keepalives_retries from get_keepalives_retries
    );
    match config.get_hosts().get(index) {
        Some(Host::Tcp(name)) => one.host(name),
        Some(Host::Unix(path)) => one.host_path(path),
        None => &mut one,
    };
    if let Some(address) = config.get_hostaddrs().get(index) {
        one.hostaddr(*address);
    }
    one.port(port_of(config, index));
    one
}

/// Port of the host at `index`. If it has no port of its own, the first port in the URL is used, else 5432.
fn port_of(config: &Config, index: usize) -> u16 {
    let ports = config.get_ports();
    ports.get(index).or(ports.first()).copied().unwrap_or(5432)
}

/// Hosts and database of a connection, as in a URL: `127.0.0.1:5432/dividends`.
fn place_of(config: &Config) -> String {
    let servers = config.get_hosts().iter().enumerate().map(|(index, host)| {
        let port = port_of(config, index);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(folder) => format!("{}:{port}", folder.display()),
        }
    });
    format!("{}/{}", servers.collect::<Vec<_>>().join(","), config.get_dbname().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    #[test]
    fn a_place_is_that_of_the_url() {
        let place = |url| place_of(&Config::from_str(url).unwrap());
        assert_eq!(place("postgres://user:secret@one:1/dividends"), "one:1/dividends");
        assert_eq!(
            place("postgres://one,two:2/d?host=/run/postgresql"),
            "one:5432,two:2,/run/postgresql:5432/d"
        );
    }

    #[test]
    fn every_host_keeps_the_settings_of_the_url() {
        let url =
            "postgres://u:p@one:1,two:2/d?target_session_attrs=read-write&connect_timeout=7&sslmode=disable";
        let config = Config::from_str(url).unwrap();
        let hosts = hosts_in_order(&config);
        let ports: Vec<u16> = hosts.iter().flat_map(|host| host.config.get_ports()).copied().collect();
        assert_eq!(ports, [1, 2]);
        for host in hosts {
            let mut whole = Config::from_str(
                "postgres://u:p@/d?target_session_attrs=read-write&connect_timeout=7&sslmode=disable",
            )
            .unwrap();
            match &host.config.get_hosts()[0] {
                Host::Tcp(name) => whole.host(name),
                Host::Unix(path) => whole.host_path(path),
            };
            whole.port(host.config.get_ports()[0]);
            assert_eq!(host.config, whole);
        }
    }

    #[tokio::test]
    async fn a_host_that_hung_is_tried_last() {
        // Accepts connections, and never replies.
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = silent.local_addr().unwrap().port();
        let url = format!("postgres://u@127.0.0.1:{port},127.0.0.1:1/d?connect_timeout=1&sslmode=disable");
        let config = Config::from_str(&url).unwrap();
        let first = |config: &Config| hosts_in_order(config)[0].config.get_ports()[0];
        assert_eq!(first(&config), port);
        let refused = connect(&config).await.unwrap_err();
        assert!(matches!(refused, DbError::Unanswered { .. }), "{refused}");
        assert_eq!(first(&config), 1);
    }
}
