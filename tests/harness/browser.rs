//! Browser for tests: Debian's Chromium, controlled by its driver over the WebDriver protocol.
//!
//! No client crate is used. It would enable features of `serde_json` that change the JSON of the service.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::{Client, Method};
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};
use skipped::Requirement;

use crate::api::client;
use crate::environment::{find_program, optional_program};
use crate::eventually;
use crate::port;
use crate::process::{Daemon, Signal, command_bound_to_parent};

/// npm package and version of the accessibility rules that pages must meet.
const AXE: &str = "axe-core@4.11.0";
const APPEARS_WITHIN: Duration = Duration::from_secs(120);
/// Name of the JSON field in which WebDriver sends the id of an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Browser with its own profile. The browser ends when this value is dropped.
#[derive(Debug)]
pub struct Browser {
    client: Client,
    session: String,
    process: Option<Pid>,
    _driver: Daemon,
}

/// Options of a browser.
#[derive(Debug, Clone, Copy, Default)]
pub struct BrowserOptions {
    /// True if the browser does not run the scripts of pages.
    pub without_scripts: bool,
}

/// Screen that the browser emulates.
#[derive(Debug, Clone, Copy)]
pub struct Screen {
    /// Width in CSS pixels. If the width is less than 500, the browser emulates a mobile device.
    pub width: u32,
    /// Height in CSS pixels.
    pub height: u32,
    /// True if the page is shown to a user who prefers a dark color scheme.
    pub dark: bool,
}

impl Browser {
    /// Starts a browser with its profile in a folder. If Chromium or its driver is not installed, records the test as
    /// skipped and returns `None`.
    pub async fn start(folder: &Path, options: BrowserOptions) -> Result<Option<Browser>> {
        if find_program("chromedriver").is_none() || find_program("chromium").is_none() {
            skipped::record(Requirement::Browser, "");
            return Ok(None);
        }
        let port = port::find_free()?;
        let mut command = command_bound_to_parent("chromedriver", "KILL");
        command.arg(format!("--port={port}"));
        let driver = Daemon::start("chromedriver", command, &folder.join(format!("driver-{port}.log")))?;
        let client = client(Duration::from_secs(60))?;
        let base = format!("http://127.0.0.1:{port}");
        eventually(Duration::from_secs(120), async || {
            let status: Value = client.get(format!("{base}/status")).send().await?.json().await?;
            ensure!(status["value"]["ready"] == true, "{status}");
            Ok(())
        })
        .await?;
        let profile = folder.join(format!("profile-{port}"));
        let asked = json!({ "capabilities": { "alwaysMatch": capabilities(&profile, options) } });
        let answer = client.post(format!("{base}/session")).json(&asked).send().await?.json().await?;
        let value: Value = value(answer)?;
        let id = value["sessionId"].as_str().context("no session")?;
        let process =
            value["capabilities"]["goog:processID"].as_i64().and_then(|pid| i32::try_from(pid).ok());
        let process = process.and_then(Pid::from_raw);
        Ok(Some(Browser { client, session: format!("{base}/session/{id}"), process, _driver: driver }))
    }

    /// Opens a URL, and waits until the page is loaded.
    pub async fn open(&self, url: &str) -> Result<()> {
        self.command(Method::POST, "/url", json!({ "url": url })).await?;
        Ok(())
    }

    /// URL of the current page.
    pub async fn url(&self) -> Result<String> {
        let url = self.command(Method::GET, "/url", Value::Null).await?;
        Ok(url.as_str().context("no address")?.to_owned())
    }

    /// Goes back to the previous page, like the back button of a browser.
    pub async fn back(&self) -> Result<()> {
        self.command(Method::POST, "/back", json!({})).await?;
        Ok(())
    }

    /// Visible text of the first element that matches a CSS selector.
    pub async fn text(&self, selector: &str) -> Result<String> {
        let element = self.find(selector).await?;
        let text = self.command(Method::GET, &format!("/element/{element}/text"), Value::Null).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// True if the page has an element that matches the selector.
    pub async fn has(&self, selector: &str) -> Result<bool> {
        let asked = json!({ "using": "css selector", "value": selector });
        let found = self.command(Method::POST, "/elements", asked).await?;
        Ok(found.as_array().is_some_and(|found| !found.is_empty()))
    }

    /// Clicks the first element that matches the selector. If the element is a link or submits a form, waits until the
    /// current page is gone.
    pub async fn click(&self, selector: &str) -> Result<()> {
        let element = self.find(selector).await?;
        let page = self.find("html").await?;
        let leads = self.leads_to_a_page(&element).await?;
        self.command(Method::POST, &format!("/element/{element}/click"), json!({})).await?;
        if !leads {
            return Ok(());
        }
        eventually(APPEARS_WITHIN, async || {
            let gone =
                self.command(Method::GET, &format!("/element/{page}/name"), Value::Null).await.is_err();
            ensure!(gone, "{selector} was clicked and the page stayed");
            Ok(())
        })
        .await
    }

    async fn leads_to_a_page(&self, element: &str) -> Result<bool> {
        let ask = async |what: &str| {
            self.command(Method::GET, &format!("/element/{element}/{what}"), Value::Null).await
        };
        Ok(ask("name").await? == "a"
            || (ask("property/type").await? == "submit" && !ask("property/form").await?.is_null()))
    }

    /// Replaces the text of the first input field that matches the selector.
    pub async fn fill(&self, selector: &str, text: &str) -> Result<()> {
        let element = self.find(selector).await?;
        self.command(Method::POST, &format!("/element/{element}/clear"), json!({})).await?;
        self.command(Method::POST, &format!("/element/{element}/value"), json!({ "text": text })).await?;
        Ok(())
    }

    /// Presses keys one after another, on the element with the focus.
    pub async fn press(&self, keys: &str) -> Result<()> {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
            })
            .collect();
        let asked = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] });
        self.command(Method::POST, "/actions", asked).await?;
        Ok(())
    }

    /// Runs JavaScript in the page, and returns its result. `body` is the body of a function. If the function returns a
    /// promise, waits for the value of the promise.
    pub async fn run(&self, body: &str) -> Result<Value> {
        self.command(Method::POST, "/execute/sync", json!({ "script": body, "args": [] })).await
    }

    /// Sets the size and color scheme of the screen for all following pages.
    pub async fn show_on(&self, screen: Screen) -> Result<()> {
        let size = json!({ "width": screen.width, "height": screen.height, "deviceScaleFactor": 1, "mobile": screen.width < 500 });
        self.devtools("Emulation.setDeviceMetricsOverride", size).await?;
        let scheme = if screen.dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", features).await?;
        Ok(())
    }

    /// Writes an image of the whole page to a file, including the parts outside of the screen.
    pub async fn photograph(&self, file: &Path) -> Result<()> {
        let asked = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.devtools("Page.captureScreenshot", asked).await?;
        let bytes = STANDARD.decode(picture["data"].as_str().context("no picture")?)?;
        std::fs::write(file, bytes).with_context(|| file.display().to_string())
    }

    /// Checks the current page against the accessibility rules of WCAG 2.2 (levels A and AA) and against best
    /// practices. Returns the violations. `rules` is the script that [`accessibility_rules`] returns.
    pub async fn accessibility(&self, rules: &str) -> Result<Vec<String>> {
        self.run(rules).await?;
        let found = self
            .run(
                "return axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
                   .then(found => found.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html + ' ' + n.failureSummary).join(' | ')))",
            )
            .await?;
        let found = found.as_array().context("no findings")?;
        Ok(found.iter().filter_map(|finding| finding.as_str().map(str::to_owned)).collect())
    }

    /// Returns the id of an element. Waits until the element appears, because the page of an earlier click may still be
    /// loading.
    async fn find(&self, selector: &str) -> Result<String> {
        let asked = json!({ "using": "css selector", "value": selector });
        eventually(APPEARS_WITHIN, async || {
            let found = self.command(Method::POST, "/element", asked.clone()).await;
            let found = found.with_context(|| selector.to_owned())?;
            Ok(found[ELEMENT].as_str().context("no element")?.to_owned())
        })
        .await
    }

    async fn devtools(&self, command: &str, parameters: Value) -> Result<Value> {
        let asked = json!({ "cmd": command, "params": parameters });
        self.command(Method::POST, "/goog/cdp/execute", asked).await
    }

    async fn command(&self, method: Method, path: &str, body: Value) -> Result<Value> {
        let mut request = self.client.request(method, format!("{}{path}", self.session));
        if !body.is_null() {
            request = request.json(&body);
        }
        value(request.send().await?.json().await?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser has its own process group, so it does not end when the process group of the driver is killed.
        if let Some(process) = self.process {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

/// Script with the accessibility rules. It is downloaded from npm once, and then stored under `target`. Without npm,
/// records the test as skipped and returns `None`.
pub fn accessibility_rules() -> Result<Option<String>> {
    let Some(npm) = optional_program("npm", Requirement::Npm) else { return Ok(None) };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/axe");
    let script = folder.join("node_modules/axe-core/axe.min.js");
    if !script.is_file() {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("package.json"), "{\"private\": true}")?;
        let arguments = ["install", "--silent", "--no-audit", "--no-fund", "--save-exact", AXE];
        let ended = Command::new(npm).args(arguments).current_dir(&folder).status()?;
        ensure!(ended.success(), "npm install {AXE}: {ended}");
    }
    Ok(Some(std::fs::read_to_string(script)?))
}

fn capabilities(profile: &Path, options: BrowserOptions) -> Value {
    let mut arguments: Vec<String> = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--no-proxy-server",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.push(format!("--user-data-dir={}", profile.display()));
    let scripts = if options.without_scripts { 2 } else { 1 };
    let preferences = json!({ "profile.managed_default_content_settings.javascript": scripts });
    json!({
        "browserName": "chrome",
        "goog:chromeOptions": { "args": arguments, "prefs": preferences },
        "timeouts": { "pageLoad": 30_000, "script": 30_000 },
    })
}

fn value(mut answer: Value) -> Result<Value> {
    if let Some(error) = answer["value"]["error"].as_str() {
        bail!("{error}: {}", answer["value"]["message"].as_str().unwrap_or_default());
    }
    Ok(answer["value"].take())
}
