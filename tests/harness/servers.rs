//! A Postgres server and a NATS server for tests or for a stack. `DATABASE_URL` and `NATS_URL` may name existing
//! servers. A private server belongs to one test and is always started by the harness.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, ensure};
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

    /// Creates a database with the service's schema, usually as a copy of a template database. On an existing server,
    /// the variable `TEMPLATE_DATABASE` may name the template.
    pub(crate) async fn create_migrated_database(&self, name: &str) -> Result<()> {
        let given = read_text(TEMPLATE_DATABASE);
        let template = match &given {
            _ if self.postgres.is_own() => self.own_template().await?,
            Some(template) => template,
            None => {
                // No template database may remain on an existing server.
                self.postgres.create_database(name, None).await?;
                return self.migrate(name).await;
            }
        };
        self.postgres.create_database(name, Some(template)).await?;
        Ok(store::db::grant_database(&self.postgres.connect(name).await?).await?)
    }

    async fn own_template(&self) -> Result<&String> {
        self.template.get_or_try_init(|| self.migrated_template()).await
    }

    async fn migrated_template(&self) -> Result<String> {
        let name = "template_dividends".to_owned();
        self.postgres.create_database(&name, None).await?;
        self.migrate(&name).await?;
        Ok(name)
    }

    async fn migrate(&self, database: &str) -> Result<()> {
        let binaries = Binaries::shared().await?;
        let endpoints = crate::Endpoints::new(self, database, "MIGRATION", "migration")?;
        let mut command = command_bound_to_parent(&binaries.projector, "KILL");
        command.arg("migrate").envs(endpoints.environment());
        output(command).await?.success().with_context(|| format!("migrating database {database}"))?;
        Ok(())
    }
}

/// Returns both values if both results are `Ok`. If both are errors, the returned error contains both messages.
fn both<A, B>(results: (Result<A>, Result<B>)) -> Result<(A, B)> {
    match results {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second)) => Err(anyhow!("{first:#}\n{second:#}")),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}
