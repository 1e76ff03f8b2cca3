//! OpenLineage events of a load (spec 2-0-2): START when its files are identified, then COMPLETE, FAIL or ABORT.
//!
//! Each attempt is a separate run. The tag `run` has the id of the load, which an attempt shares with its repetitions.

use std::collections::BTreeMap;

use async_nats::ServerAddr;
use chrono::{DateTime, SecondsFormat, Utc};
use event_log::stream::StreamSettings;
use market::event::RunVisibility;
use market::expectation::ExpectationCheck;
use serde_json::{Value, json};

use crate::load::args::LoadArgs;
use crate::load::event_sender::{EventSender, FetchedDataset};
use crate::load::file_list::FileReport;
use crate::load::gate::GateResult;
use crate::load::input::LoadInput;
use crate::load::publication::LoadError;
use crate::load::report::LoadSummary;
use crate::source::feed_files::MAX_LISTED;

const SPEC: &str = "https://openlineage.io/spec";
const PRODUCER: &str = concat!("urn:dividend-data-service:ingest:", env!("CARGO_PKG_VERSION"));

/// Attempt to load files, with its position in the data catalogue.
pub(crate) struct LineageRun<'a> {
    sender: EventSender,
    args: &'a LoadArgs,
    /// UUID of the attempt.
    id: String,
    /// Path and size in bytes of the first files, in the order of the summary. The size of a file that was not read is 0.
    files: Vec<(String, u64)>,
    /// Size of all files in bytes.
    bytes: u64,
    /// Dataset of the log.
    log: Value,
}

impl<'a> LineageRun<'a> {
    /// Sends the event START; `None` without a data catalogue. `summary` lists the files that were refused unread.
    pub(crate) fn start(
        args: &'a LoadArgs,
        settings: &StreamSettings,
        summary: &LoadSummary,
        inputs: &[LoadInput],
    ) -> Option<Self> {
        if args.dry_run {
            return None;
        }
        let sender = args.lineage.start_sender()?;
        let absolute = |path: String| match args.reads_standard_input() {
            true => path,
            false => std::path::absolute(&path).map_or(path, |path| path.display().to_string()),
        };
        let refused = summary.files.reports.iter();
        let refused = refused.map(|file| (file.path.clone().unwrap_or_else(|| file.file.clone()), 0));
        let read = inputs.iter().map(|input| (input.file.display_path(), input.unpacked_bytes));
        let first = refused.chain(read).take(MAX_LISTED);
        let files = first.map(|(path, bytes)| (absolute(path), bytes)).collect();
        let bytes = inputs.iter().map(|input| input.unpacked_bytes).sum();
        let server = settings.nats_url.split(',').next().unwrap_or_default().trim();
        let namespace = match server.parse::<ServerAddr>() {
            Ok(server) => {
                let (port, server) = (server.port(), server.into_inner());
                format!("nats://{}:{port}", server.host_str().unwrap_or_default())
            }
            Err(_) => "nats".to_owned(),
        };
        let log = json!({ "namespace": namespace, "name": settings.nats_stream });
        let begun = Utc::now();
        let id = attempt_id(begun, &summary.run);
        let run = Self { sender, args, id, files, bytes, log };
        run.send("START", begun, run.tags(summary, None), run.inputs(None), run.log.clone());
        Some(run)
    }

    /// Sends the last event. `error` is the error that ended the load.
    pub(crate) async fn finish(self, summary: &LoadSummary, error: Option<&LoadError>) {
        let (event_type, message) = match error {
            Some(error @ LoadError::Interrupted) => ("ABORT", Some(error.to_string())),
            Some(error) => ("FAIL", Some(error.to_string())),
            None if summary.exit_code() == 2 => {
                ("FAIL", Some(summary.files.describe_refusals(summary.rejects_total)))
            }
            None => ("COMPLETE", None),
        };
        let state = match (summary.undone, summary.held) {
            (true, _) => RunVisibility::Excluded,
            (false, true) => RunVisibility::Held,
            (false, false) => RunVisibility::Visible,
        };
        let mut facets = self.tags(summary, message.is_none().then_some(("state", state.as_str())));
        if let Some(message) = message {
            let fields = json!({ "message": message, "programmingLanguage": "RUST" });
            facets["errorMessage"] = facet("1-0-1/ErrorMessageRunFacet", fields);
        }
        let mut log = self.log.clone();
        if error.is_none() {
            let rows = if summary.already_loaded { 0 } else { summary.rows_total };
            let statistics = facet("1-0-2/OutputStatisticsOutputDatasetFacet", json!({ "rowCount": rows }));
            log["outputFacets"] = json!({ "outputStatistics": statistics });
        }
        self.send(event_type, Utc::now(), facets, self.inputs(Some(summary)), log);
        self.sender.finish().await;
    }

    fn send(&self, event_type: &str, time: DateTime<Utc>, facets: Value, inputs: Vec<Value>, output: Value) {
        let job_type =
            json!({ "processingType": "BATCH", "integration": "DIVIDEND_DATA_SERVICE", "jobType": "LOAD" });
        self.sender.send(json!({
            "eventType": event_type,
            "eventTime": time.to_rfc3339_opts(SecondsFormat::Millis, true),
            "run": { "runId": self.id, "facets": facets },
            "job": {
                "namespace": self.args.lineage.openlineage_namespace,
                "name": format!("ingest.load.{}", self.args.source),
                "facets": { "jobType": facet("2-0-4/JobTypeJobFacet", job_type) },
            },
            "inputs": inputs,
            "outputs": [output],
            "producer": PRODUCER,
            "schemaURL": format!("{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"),
        }));
    }

    /// Run facets with the tags of the run. The run has no id if all files were refused unread.
    fn tags(&self, summary: &LoadSummary, state: Option<(&str, &str)>) -> Value {
        let id = Some(("run", summary.run.as_str())).filter(|(_, run)| !run.is_empty());
        let tags = id.into_iter().chain(state);
        let tags = tags.map(|(key, value)| json!({ "key": key, "value": value, "source": "INTEGRATION" }));
        json!({ "tags": facet("1-0-0/TagsRunFacet", json!({ "tags": tags.collect::<Vec<_>>() })) })
    }

    /// Datasets of the first files; one dataset of all files that were fetched from a vendor. `summary` has their
    /// statistics at the end of the load.
    fn inputs(&self, summary: Option<&LoadSummary>) -> Vec<Value> {
        let reports = match summary {
            // After an identical earlier load, no file is read, and the other reports are from that load.
            Some(LoadSummary { already_loaded: true, files, .. }) => {
                &files.reports[..files.refused().count()]
            }
            Some(summary) => &summary.files.reports,
            None => &[],
        };
        let gate = summary.and_then(|summary| summary.gate.as_ref());
        match &self.args.fetched_from {
            Some(FetchedDataset { namespace, name }) => {
                let facets = input_facets(self.bytes, reports, gate);
                vec![json!({ "namespace": namespace, "name": name, "inputFacets": facets })]
            }
            None => {
                let dataset = |(index, (path, bytes)): (usize, &(String, u64))| {
                    let report = reports.get(index..=index).unwrap_or_default();
                    let facets = input_facets(*bytes, report, gate);
                    json!({ "namespace": "file", "name": path, "inputFacets": facets })
                };
                self.files.iter().enumerate().map(dataset).collect()
            }
        }
    }
}

/// Statistics of files, and the checks of their rows. `files` is empty if no file was read.
fn input_facets(bytes: u64, files: &[FileReport], gate: Option<&GateResult>) -> Value {
    let mut facets = json!({});
    // The gate does not check the rows of refused files.
    let is_loaded = files.is_empty() || files.iter().any(|file| file.reason.is_none());
    let mut assertions: Vec<Value> = match gate.filter(|_| is_loaded) {
        Some(GateResult::Verdict(verdict)) => verdict.checks.iter().map(gate_assertion).collect(),
        Some(GateResult::Failed { error }) => {
            vec![json!({ "assertion": "gate", "success": false, "severity": "error", "description": error })]
        }
        None => Vec::new(),
    };
    if !files.is_empty() {
        let records = files.iter().map(|file| file.records).sum::<u64>();
        let statistics = json!({ "rowCount": records, "size": bytes, "fileCount": files.len() });
        facets["inputStatistics"] = facet("1-0-0/InputStatisticsInputDatasetFacet", statistics);
        let refusals: Vec<&str> = files.iter().filter_map(|file| file.reason.as_deref()).collect();
        let listed = refusals[..refusals.len().min(MAX_LISTED)].join("; ");
        assertions.push(none_expected("refused_files", refusals.len() as u64, "error", &listed));
        let mut rejects = BTreeMap::new();
        for (reason, rows) in files.iter().flat_map(|file| &file.rejects) {
            *rejects.entry(reason).or_default() += rows;
        }
        let reasons: Vec<_> = rejects.iter().map(|(reason, rows)| format!("{reason} {rows}")).collect();
        assertions.push(none_expected("rejected_rows", rejects.values().sum(), "warn", &reasons.join(", ")));
    }
    if !assertions.is_empty() {
        let assertions = json!({ "assertions": assertions });
        facets["dataQualityAssertions"] = facet("1-1-0/DataQualityAssertionsDatasetFacet", assertions);
    }
    facets
}

/// Assertion that a count is 0.
fn none_expected(assertion: &str, count: u64, severity: &str, description: &str) -> Value {
    json!({
        "assertion": assertion, "success": count == 0, "severity": severity, "description": description,
        "expected": "0", "actual": count.to_string(),
    })
}

fn gate_assertion(check: &ExpectationCheck) -> Value {
    let ExpectationCheck { expectation, kind, value, limit, met, .. } = check;
    let mut assertion = json!({
        "assertion": expectation, "name": format!("{expectation} of {kind}"), "success": met,
        "severity": "error", "description": check.to_string(), "actual": value.0.to_string(),
    });
    if let Some(limit) = limit {
        assertion["expected"] = limit.0.to_string().into();
    }
    assertion
}

/// Adds the fields of every facet. `schema` is the version and name of the facet's schema.
fn facet(schema: &str, mut fields: Value) -> Value {
    let name = schema.split('/').next_back().unwrap_or_default();
    fields["_producer"] = PRODUCER.into();
    fields["_schemaURL"] = format!("{SPEC}/facets/{schema}.json#/$defs/{name}").into();
    fields
}

/// UUID, version 7, of an attempt to load the run.
fn attempt_id(begun: DateTime<Utc>, run: &str) -> String {
    let process = std::process::id();
    let hash = blake3::hash(format!("{begun:?} {process} {run}").as_bytes());
    let (time, hash) = (begun.timestamp_millis(), &hash.to_hex()[..18]);
    let time = format!("{time:012x}");
    format!("{}-{}-7{}-a{}-{}", &time[..8], &time[8..], &hash[..3], &hash[3..6], &hash[6..])
}
