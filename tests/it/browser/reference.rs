//! Tests of the API reference page. Every endpoint responds at the press of a button. The browser tab stores the key
//! until sign-out.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::BrowserOptions;
use serde_json::Value;

use super::Stage;

const WHO: &str = "reader@example.com";
const QUOTE: &str = "stocks_by_symbol_quote";

/// Opens the section of an endpoint on the API reference page, and presses the button that sends the request.
pub(super) async fn press(stage: &Stage, endpoint: &str) -> Result<()> {
    stage.browser.click(&format!("#{endpoint} > summary")).await?;
    let script = format!("document.querySelector('#{endpoint} form.call > button').click()");
    stage.browser.run(&script).await?;
    Ok(())
}

/// Waits until the API reference page shows a response with status 200 for an endpoint.
pub(super) async fn answered(stage: &Stage, endpoint: &str) -> Result<()> {
    harness::eventually(Duration::from_secs(120), async || {
        let status = format!("return document.querySelector('#{endpoint} .reply').dataset.status ?? ''");
        let status = stage.browser.run(&status).await?;
        let outcome = stage.browser.text(&format!("#{endpoint} .outcome")).await?;
        ensure!(status == "200", "{endpoint}: {outcome}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn every_endpoint_answers_at_the_first_press() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    // The page uses the symbol of the example response, which the service loads in the background.
    harness::eventually(Duration::from_secs(120), async || {
        stage.open("/docs").await?;
        ensure!(stage.browser.has("#reference[data-symbol]").await?, "no example yet");
        Ok(())
    })
    .await?;
    let document = stage.world.api.get("/openapi.json", None).await?.json()?;
    let documented = document["paths"].as_object().context("paths")?;
    let filled = "return [...document.querySelectorAll('.optional input, .optional select')].filter(f => f.value).length";
    assert_eq!(stage.browser.run(filled).await?, 0, "optional parameters are empty");
    assert_eq!(
        stage.browser.run("return document.querySelectorAll('input[type=password]').length").await?,
        1
    );
    stage.browser.fill("#key", &stage.world.professional).await?;
    // No files are published here.
    for (path, item) in documented.iter().filter(|(path, _)| *path != "/v1/files") {
        let operation = item.as_object().and_then(|item| item.values().next());
        let endpoint = operation.and_then(|operation| operation["operationId"].as_str());
        let endpoint = endpoint.with_context(|| path.clone())?;
        press(&stage, endpoint).await?;
        answered(&stage, endpoint).await?;
        let shown = format!("return document.querySelector('#{endpoint} .reply .answer').textContent");
        let shown = stage.browser.run(&shown).await?;
        let shown = shown.as_str().context("an answer")?;
        if path == "/v1/changes" {
            ensure!(shown.contains("CAUGHT_UP"), "{path}: {shown}");
            continue;
        }
        ensure!(shown.starts_with("{\n  \"data\": "), "{path}: {shown}");
        serde_json::from_str::<Value>(shown).with_context(|| path.clone())?;
    }
    Ok(())
}

#[tokio::test]
async fn a_call_without_a_key_says_where_to_enter_one() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    stage.open("/docs").await?;
    press(&stage, QUOTE).await?;
    assert!(stage.browser.text(&format!("#{QUOTE} .outcome")).await?.contains("needs a key"));
    press(&stage, "health").await?;
    answered(&stage, "health").await
}

#[tokio::test]
async fn the_holders_key_is_offered_and_kept_for_the_session() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    let browser = &stage.browser;
    stage.sign_up(WHO).await?;
    stage.open("/docs").await?;
    browser.click("form[action='/dashboard/keys/reference'] button").await?;
    assert_eq!(stage.path().await?, "/docs");
    let key = async || -> Result<String> {
        let value = browser.run("return document.getElementById('key').value").await?;
        Ok(value.as_str().unwrap_or_default().to_owned())
    };
    let first = key().await?;
    assert!(first.starts_with("dds_live_"), "{first}");
    assert_eq!(stage.status(&first).await?, 200);
    // The HTML of the reloaded page does not contain the key. The browser tab has stored the key.
    stage.open("/docs").await?;
    assert_eq!(key().await?, first);
    assert!(!browser.run("return document.documentElement.outerHTML").await?.to_string().contains(&first));
    press(&stage, "stocks").await?;
    answered(&stage, "stocks").await?;
    // A newer key replaces the first one.
    stage.open("/docs").await?;
    browser.click("form[action='/dashboard/keys/reference'] button").await?;
    let second = key().await?;
    assert_eq!((stage.status(&first).await?, stage.status(&second).await?), (401, 200));
    // Signing out deletes the key and removes it from the browser tab.
    browser.click("form[action='/sign-out'] button").await?;
    stage.open("/docs").await?;
    assert_eq!(key().await?, "");
    assert_eq!(stage.status(&second).await?, 401);
    Ok(())
}

#[tokio::test]
async fn a_new_key_is_taken_to_the_reference() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    stage.sign_up(WHO).await?;
    let secret = stage.create_key("laptop").await?;
    stage.browser.click("a[data-use=secret]").await?;
    assert_eq!(stage.path().await?, "/docs");
    assert_eq!(stage.browser.run("return document.getElementById('key').value").await?, secret.as_str());
    stage.browser.click("#forget").await?;
    stage.open("/docs").await?;
    assert_eq!(stage.browser.run("return document.getElementById('key').value").await?, "");
    Ok(())
}
