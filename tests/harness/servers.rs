//! A Postgres server and a NATS server for tests or for a stack. `DATABASE_URL` and `NATS_URL` may name existing
//! servers. A private server belongs to one test and is always started by the harness.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
use store::db::DatabaseContents;
use tokio::sync::OnceCell;

use crate::binaries::Binaries;
use crate::environment::read_text;
use crate::folder;
use crate::nats::NatsServer;
use crate::postgres::{Durability, PostgresServer};
use crate::process::{command_bound_to_parent, output};
use crate::small_disk::SmallDisk;

const TEMPLATE_DATABASE: &str = "TEMPLATE_DATABASE";

/// A Postgres server and a NATS server.
#[derive(Debug)]
pub struct Servers {
    /// Postgres server on which every test app has its own database.
    pub postgres: PostgresServer,
    /// NATS server on which every test app has its own stream.
    pub nats: NatsServer,
    template: OnceCell<String>,
}

impl Servers {
    /// Servers that all tests of this process share. The first call starts them or connects to existing servers.
    pub async fn shared() -> Result<Arc<Servers>> {
        static SHARED: OnceCell<Arc<Servers>> = OnceCell::const_new();
        let start = async || {
            let missing = cargo_stack::missing_for_start();
            ensure!(missing.is_empty(), "{}", cargo_stack::report(&missing));
            let folder = folder::ephemeral("tests")?;
            let servers = Servers::find(
                read_text("DATABASE_URL"),
                read_text("NATS_URL"),
                &folder,
                Durability::Disposable,
            );
            anyhow::Ok(Arc::new(servers.await?))
        };
        SHARED.get_or_try_init(start).await.cloned()
    }

    /// Starts servers for one test. The test may kill and restart the servers, which lose no acknowledged data.
    pub async fn private() -> Result<Arc<Servers>> {
        let folder = folder::ephemeral("private-servers")?;
        Servers::private_at(&folder.join("postgres"), &folder.join("nats")).await
    }

    /// Like [`Servers::private`], but NATS stores its data on `disk`.
    pub async fn private_with_nats_on(disk: &SmallDisk) -> Result<Arc<Servers>> {
        let folder = folder::ephemeral("private-servers")?;
        Servers::private_at(&folder.join("postgres"), &disk.path().join("nats")).await
    }

    /// Like [`Servers::private`], but Postgres stores its data on `disk`.
    pub async fn private_with_postgres_on(disk: &SmallDisk) -> Result<Arc<Servers>> {
        let folder = folder::ephemeral("private-servers")?;
        Servers::private_at(&disk.path().join("postgres"), &folder.join("nats")).await
    }

    async fn private_at(postgres: &Path, nats: &Path) -> Result<Arc<Servers>> {
        let (postgres, nats) =
            tokio::try_join!(PostgresServer::start(postgres, Durability::Full), NatsServer::start(nats))?;
        Ok(Arc::new(Servers { postgres, nats, template: OnceCell::new() }))
    }

    pub(crate) async fn find(
        database_url: Option<String>,
        nats_url: Option<String>,
        folder: &Path,
        durability: Durability,
    ) -> Result<Servers> {
        let postgres = async {
            match database_url {
                Some(url) => PostgresServer::existing(&url).await,
                None => PostgresServer::start(&folder.join("postgres"), durability).await,
            }
        };
        let nats = async {
            match nats_url {
                Some(url) => NatsServer::existing(&url).await,
                None => NatsServer::start(&folder.join("nats")).await,
            }
        };
        let (postgres, nats) = both(tokio::join!(postgres, nats))?;
        Ok(Servers { postgres, nats, template: OnceCell::new() })
    }

    /// Environment variables that make another test process use the same servers and programs. The variable
    /// `TEMPLATE_DATABASE` names the template database, and is empty if the harness did not start Postgres.
    pub async fn environment(&self) -> Result<[(&'static str, String); 4]> {
        let programs = Binaries::shared().await?;
        let folder = programs.projector.parent().context("the programs are in a folder")?;
        let template =
            if self.postgres.is_own() { self.own_template().await?.clone() } else { String::new() };
        Ok([
            ("DATABASE_URL", self.postgres.url("postgres")),
            ("NATS_URL", self.nats.url().to_owned()),
            ("SERVICE_PROGRAMS", folder.display().to_string()),
            (TEMPLATE_DATABASE, template),
        ])
    }

    /// Creates databases with the service's schema, usually as copies of template databases. On an existing server, the
    /// variable `TEMPLATE_DATABASE` may name the template of the market. `self` has the market.
    pub(crate) async fn create_migrated_databases(&self, databases: DatabasePair<'_>) -> Result<()> {
        let given = read_text(TEMPLATE_DATABASE);
        let DatabasePair { market, accounts } = databases;
        let template = match &given {
            _ if !std::ptr::eq(market.server, accounts.server) => return migrate_new(databases).await,
            _ if self.postgres.is_own() => self.own_template().await?,
            Some(template) => template,
            // No template database may remain on an existing server.
            None => return migrate_new(databases).await,
        };
        if databases.are_one() {
            return market.copy(template, DatabaseContents::All).await;
        }
        let accounts_template = accounts_name(template);
        tokio::try_join!(
            market.copy(template, DatabaseContents::Market),
            accounts.copy(&accounts_template, DatabaseContents::Accounts),
        )?;
        Ok(())
    }

    async fn own_template(&self) -> Result<&String> {
        self.template.get_or_try_init(|| self.migrated_template()).await
    }

    async fn migrated_template(&self) -> Result<String> {
        let name = "template_dividends".to_owned();
        let database = |name| Database { server: &self.postgres, name };
        let accounts = accounts_name(&name);
        migrate_new(DatabasePair { market: database(&name), accounts: database(&accounts) }).await?;
        Ok(name)
    }
}

/// Database on a server. It may not exist yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Database<'a> {
    pub(crate) server: &'a PostgresServer,
    pub(crate) name: &'a str,
}

impl Database<'_> {
    /// URL for the role that owns the database.
    pub(crate) fn url(self) -> String {
        self.server.url(self.name)
    }

    async fn copy(self, template: &str, contents: DatabaseContents) -> Result<()> {
        self.server.create_database(self.name, Some(template)).await?;
        Ok(store::db::grant_database(&self.server.connect(self.name).await?, contents).await?)
    }
}

/// Databases of the market and of the accounts, which may be one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabasePair<'a> {
    pub(crate) market: Database<'a>,
    pub(crate) accounts: Database<'a>,
}

impl DatabasePair<'_> {
    pub(crate) fn are_one(self) -> bool {
        self.market.url() == self.accounts.url()
    }

    /// Creates the databases without the service's schema.
    pub(crate) async fn create_empty(self) -> Result<()> {
        self.market.server.create_database(self.market.name, None).await?;
        if !self.are_one() {
            self.accounts.server.create_database(self.accounts.name, None).await?;
        }
        Ok(())
    }
}

async fn migrate_new(databases: DatabasePair<'_>) -> Result<()> {
    databases.create_empty().await?;
    let binaries = Binaries::shared().await?;
    let endpoints = crate::Endpoints::new(databases, "", "MIGRATION", "migration")?;
    let mut command = command_bound_to_parent(&binaries.projector, "KILL");
    command.arg("migrate").envs(endpoints.environment());
    output(command).await?.success().context("migrating the databases")?;
    Ok(())
}

/// Name of the accounts' database next to this database of the market.
pub(crate) fn accounts_name(market: &str) -> String {
    format!("{market}_accounts")
}

/// Returns both values if both results are `Ok`. If both are errors, the returned error contains both messages.
fn both<A, B>(results: (Result<A>, Result<B>)) -> Result<(A, B)> {
    match results {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) => Err(anyhow!("{first:#}\n{second:#}")),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}
