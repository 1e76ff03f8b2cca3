//! Programs of the service (ingest, projector and API), with the commands and settings that the stack uses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use synthetic_market::write_revisions;

use super::contents::LoadPlan;
use super::folder::StackFolder;
use super::progress::Progress;
use super::report::MetricsPorts;
use super::revisions;
use crate::api::Api;
use crate::binaries::{Binaries, Program};
use crate::endpoints::Endpoints;
use crate::environment;
use crate::market::generate_market;
use crate::process::{Daemon, Output, command_bound_to_parent, output};
use crate::servers::Servers;

/// Maximum time for which a start waits for the effect of the user's feeds.
const EFFECT_WAIT: Duration = Duration::from_secs(60);
/// Exit code of `ingest load` if it refused some files or rows, but loaded others.
const SOME_REFUSED: i32 = 1;
/// Exit code of `ingest load` if it loaded no row.
const NOTHING_LOADED: i32 = 2;
/// Beginnings of the lines in the summary of `ingest load` that report refused files and rejected rows.
const REFUSALS: [&str; 3] = ["refused ", "rejected: ", "open rejects "];

#[derive(Debug)]
pub(super) struct Services<'a> {
    binaries: Arc<Binaries>,
    environment: Vec<(String, String)>,
    folder: &'a StackFolder,
    progress: &'a Progress,
}

impl<'a> Services<'a> {
    pub(super) fn new(
        binaries: &Arc<Binaries>,
        endpoints: &Endpoints,
        folder: &'a StackFolder,
        servers: &Servers,
        progress: &'a Progress,
    ) -> Result<Services<'a>> {
        let mut environment = endpoints.environment();
        environment.push(("CURSOR_SECRET".to_owned(), folder.cursor_secret()?));
        environment.push(("NO_COLOR".to_owned(), "1".to_owned()));
        if servers.nats.is_own() {
            environment.push(("NATS_REPLICAS".to_owned(), "1".to_owned()));
        }
        Ok(Services { binaries: Arc::clone(binaries), environment, folder, progress })
    }

    pub(super) async fn migrate(&self) -> Result<()> {
        self.step("migrating the database", "migrate", Program::Projector, &["migrate"]).await
    }

    pub(super) async fn load(&self, plan: &LoadPlan) -> Result<()> {
        let (paths, source) = match plan {
            LoadPlan::Nothing => return Ok(()),
            LoadPlan::Demo { symbols, years } => (vec![self.generate(*symbols, *years)?], "demo"),
            LoadPlan::Feeds { paths, source, .. } => (paths.clone(), source.as_str()),
        };
        let contents = plan.begun(self.folder)?;
        let mut command = self.command(Program::Ingest);
        command.args(["--verbose", "load"]).args(&paths).args(["--source", source, "--effect-wait", "0"]);
        let log = self.folder.log("load");
        let what = "loading the feeds into the log";
        let codes = [SOME_REFUSED, NOTHING_LOADED];
        match self.progress.step_with_findings(what, command, &log, &codes).await? {
            Some((NOTHING_LOADED, summary)) => {
                contents.restore(self.folder)?;
                self.say_refusals("no feed is loaded:", &summary);
                bail!(
                    "every file is refused; correct the files and start again, or start with --empty ({} has the whole report)",
                    log.display()
                )
            }
            Some((_, summary)) => {
                self.say_refusals("some of the feeds are not loaded:", &summary);
                self.say_next_load(source, &log);
            }
            None => {}
        }
        // The demo market is complete after its revisions.
        if matches!(plan, LoadPlan::Demo { .. }) { Ok(()) } else { plan.done(self.folder) }
    }

    fn say_refusals(&self, title: &str, summary: &str) {
        self.progress.say(format_args!("{title}"));
        for line in summary.lines().filter(|line| REFUSALS.iter().any(|start| line.starts_with(start))) {
            self.progress.say(format_args!("  {line}"));
        }
    }

    fn say_next_load(&self, source: &str, log: &Path) {
        self.progress.say(format_args!(
            "the rest is loaded; correct the files, then run `ingest load FILE --source {source}` with the variables of `{} env` ({} has the whole report)",
            super::report::program_name(),
            log.display()
        ));
    }

    /// Prints how the user's own feeds changed the served data, as `projector audit --since` reports it, or the command
    /// if that takes longer than a minute. Prints nothing if this start loaded no feeds of the user.
    pub(super) async fn report_effect(&self, plan: &LoadPlan) -> Result<()> {
        let LoadPlan::Feeds { .. } = plan else { return Ok(()) };
        let log = fs::read_to_string(self.folder.log("load"))?;
        let Some((_, run)) = log.lines().find_map(|line| line.split_once("projector audit --since ")) else {
            return Ok(());
        };
        let mut command = self.command(Program::Projector);
        command.args(["audit", "--since", run, "--limit", "5"]);
        match tokio::time::timeout(EFFECT_WAIT, output(command)).await {
            Ok(effect) => self.progress.say(format_args!("{}", effect?.success()?.stdout.trim_end())),
            Err(_) => self
                .progress
                .say(format_args!("`projector audit --since {run}` shows what the feeds changed")),
        }
        Ok(())
    }

    pub(super) async fn catch_up(&self) -> Result<()> {
        let arguments = ["run", "--until-caught-up"];
        self.step("projecting the log into tables", "catch-up", Program::Projector, &arguments).await
    }

    pub(super) fn start_projector(&self, figures: &MetricsPorts) -> Result<Daemon> {
        let mut command = self.command(Program::Projector);
        command.arg("run").env("METRICS_LISTEN", figures.projector.to_string());
        Daemon::start("the projector", command, &self.folder.log("projector"))
    }

    pub(super) async fn start_api(&self, port: u16, figures: &MetricsPorts) -> Result<Api> {
        self.progress.say(format_args!("starting projector and API"));
        let address = format!("127.0.0.1:{port}");
        let mut command = self.command(Program::Api);
        // On a local stack, the same person is the operator and the user of the dashboard.
        command.args(["serve", "--listen", &address, "--sign-up", "open", "--billing", "self_service"]);
        command.args(["--pages", "public", "--pages-tier", "professional"]);
        command.env("METRICS_LISTEN", figures.api.to_string());
        // `stack env` exports the address of its stack under both names.
        if environment::read_text("PUBLIC_URL") == environment::read_text("API_URL") {
            command.env_remove("PUBLIC_URL");
        }
        let process = Daemon::start("the API", command, &self.folder.log("api"))?;
        Api::wait_until_ready(format!("http://{address}"), process).await
    }

    pub(super) async fn api(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = self.command(Program::Api);
        command.args(arguments);
        output(command).await
    }

    /// Runs `ingest`, and returns its output. Fails if the exit code is not 0.
    pub(super) async fn ingest(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.command(Program::Ingest);
        command.args(arguments);
        Ok(output(command).await?.success()?.stdout)
    }

    /// Returns the folder of the demo market's first load. Generates the market and its revisions if no earlier start
    /// did.
    fn generate(&self, symbols: u32, years: u32) -> Result<PathBuf> {
        let folder = self.folder.path().join("demo");
        let market = folder.join("market");
        if market.exists() {
            return Ok(market);
        }
        // Leftovers of an interrupted start are discarded.
        let staging = self.folder.path().join("demo.new");
        for leftover in [&folder, &staging] {
            let _ = fs::remove_dir_all(leftover);
        }
        self.progress.say(format_args!("generating the demo market"));
        let options = format!("--symbols {symbols} --years {years} --seed 7 --familiar-tickers");
        generate_market(staging.join("market"), &options)?;
        write_revisions(&staging.join("market"), &staging.join(revisions::LATER))?;
        fs::rename(&staging, &folder).context("moving the demo market into place")?;
        Ok(market)
    }

    async fn step(&self, what: &str, log: &str, program: Program, arguments: &[&str]) -> Result<()> {
        let mut command = self.command(program);
        command.args(arguments);
        self.progress.step(what, command, &self.folder.log(log)).await
    }

    fn command(&self, program: Program) -> Command {
        let mut command = command_bound_to_parent(self.binaries.path(program), "KILL");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}
