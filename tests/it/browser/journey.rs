//! Tests of what a user does in the dashboard, from the first visit to the deletion of the account.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Browser, BrowserOptions, Requirement, optional_program};

use super::{CALL, PASSWORD, Stage};

const WHO: &str = "person@example.com";

#[tokio::test]
async fn a_person_sees_what_the_service_is_and_lands_on_the_next_step() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    let browser = &stage.browser;
    stage.open_with_example().await?;
    let page = browser.text("main").await?;
    for said in
        ["Dividends, exact to the last digit", "What it serves", "A live answer", "Plans", "1,000,000"]
    {
        assert!(page.contains(said), "{said}: {page}");
    }
    // The example is exactly the response of the API.
    let call = browser.text(".example pre code").await?;
    let path =
        call.split_whitespace().nth(1).and_then(|url| url.strip_prefix(stage.world.api.base_url.as_str()));
    let answer = stage.world.api.get(path.context("a call")?, Some(&stage.world.professional)).await?.text();
    let shown = browser.run("return document.querySelector('.example .answer').textContent").await?;
    let shown: String = shown.as_str().context("a text")?.split_whitespace().collect();
    let answered: String = answer.split_whitespace().collect();
    // `meta` contains the time of the request, so only the text before it is compared.
    assert_eq!(shown.split("\"meta\"").next(), answered.split("\"meta\"").next());
    for (selector, leads) in [("a[href='/docs']", "/docs"), ("a[href='/plans']", "/plans")] {
        stage.open("/").await?;
        browser.click(selector).await?;
        assert_eq!(stage.path().await?.trim_end_matches('#'), leads);
    }
    stage.open("/").await?;
    browser.click(".actions a").await?;
    assert_eq!(stage.path().await?, "/sign-up");
    stage.sign_up(WHO).await?;
    assert_eq!(stage.path().await?, "/dashboard?done=signed-up");
    assert_eq!(browser.text("[role=status]").await?, "The account is ready, and you are signed in.");
    assert_eq!(browser.text("#first").await?, "Create your first key");
    Ok(())
}

#[tokio::test]
async fn a_person_copies_a_call_that_works_and_watches_it_appear() -> Result<()> {
    if optional_program("curl", Requirement::Curl).is_none() {
        return Ok(());
    }
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    let browser = &stage.browser;
    stage.open_with_example().await?;
    stage.sign_up(WHO).await?;
    let secret = stage.create_key("laptop").await?;
    let curl = browser.text("#call").await?;
    let ended = Command::new("sh").args(["-c", &format!("{curl} --noproxy '*' --fail")]).output()?;
    let answer = String::from_utf8(ended.stdout)?;
    assert!(ended.status.success() && answer.starts_with("{\"data\""), "{curl}: {answer}");
    // The button copies the secret that the page shows.
    browser
        .run("window.copied = null; navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
        .await?;
    browser.click("button[data-copy=secret]").await?;
    assert_eq!(browser.run("return window.copied").await?, serde_json::json!(secret));
    // The secret is not shown again when the user goes back.
    browser.click("main > p a.button").await?;
    assert_eq!(stage.path().await?, "/dashboard/keys");
    browser.back().await?;
    assert!(!browser.run("return document.documentElement.outerHTML").await?.to_string().contains(&secret));

    for _ in 0..4 {
        ensure!(stage.status(&secret).await? == 200);
    }
    harness::eventually(Duration::from_secs(120), async || {
        stage.open("/dashboard/usage").await?;
        let page = browser.text("main").await?;
        ensure!(page.contains("5 of 5,000 calls") && page.contains("/v1/stocks/{symbol}/quote"), "{page}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_client_goes_on_while_its_key_is_replaced() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    let browser = &stage.browser;
    stage.world.app.sql("update accounts.tiers set rate_per_minute = 100000, burst = 100000", &[]).await?;
    stage.sign_up(WHO).await?;
    stage.open("/dashboard/keys").await?;
    browser.fill("#name", "nightly").await?;
    browser.click("input[name=life][value='30']").await?;
    browser.click("form[action='/dashboard/keys'] button[type=submit]").await?;
    let old = browser.text("#secret").await?;

    let (stop, failed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let caller = tokio::spawn({
        let (stop, failed, key) = (Arc::clone(&stop), Arc::clone(&failed), old.clone());
        let (client, url) =
            (harness::client(Duration::from_secs(120))?, format!("{}{CALL}", stage.world.api.base_url));
        async move {
            let mut calls = 0u32;
            while !stop.load(Ordering::Relaxed) {
                let status =
                    client.get(&url).bearer_auth(&key).send().await.map(|answer| answer.status().as_u16());
                failed.fetch_add(u32::from(!matches!(status, Ok(200))), Ordering::Relaxed);
                calls += 1;
            }
            calls
        }
    });
    stage.open("/dashboard/keys").await?;
    browser.click("td .actions a").await?;
    browser.click("input[name=overlap][value='24h']").await?;
    browser.click("main form button[type=submit]").await?;
    let new = browser.text("#secret").await?;
    assert_eq!((stage.status(&new).await?, stage.status(&old).await?), (200, 200));
    stop.store(true, Ordering::Relaxed);
    assert!(caller.await? > 0);
    assert_eq!(failed.load(Ordering::Relaxed), 0);

    stage.open("/dashboard/keys").await?;
    assert!(browser.text("tbody").await?.contains(&new[new.len() - 4..]));
    browser.click("tbody tr:last-child td .actions a.danger").await?;
    assert!(browser.text("main").await?.contains("refused from the next call on"));
    browser.click("button.danger").await?;
    assert!(browser.text("[role=status]").await?.contains("deleted"));
    assert_eq!((stage.status(&new).await?, stage.status(&old).await?), (401, 200));
    Ok(())
}

#[tokio::test]
async fn a_person_at_the_limit_reads_what_to_do_and_upgrades() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    let browser = &stage.browser;
    stage.world.app.sql("update accounts.tiers set monthly_quota = 3 where tier = 'free'", &[]).await?;
    stage.sign_up(WHO).await?;
    let key = stage.create_key("k").await?;
    let mut statuses = vec![];
    for _ in 0..5 {
        statuses.push(stage.status(&key).await?);
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    harness::eventually(Duration::from_secs(120), async || {
        stage.open("/dashboard/usage").await?;
        let page = browser.text("main").await?;
        for said in ["3 of 3 calls", "The month is used up (429)", "Upgrade to go on at once"] {
            ensure!(page.contains(said), "{said}: {page}");
        }
        Ok(())
    })
    .await?;
    // The `upgrade_url` of the refused call leads to the plans, where a button opens the page for upgrades.
    let refused = stage.world.api.get(CALL, Some(&key)).await?.json()?;
    stage.open(refused["upgrade_url"].as_str().context("an address")?).await?;
    browser.click("main a.button").await?;
    assert_eq!(stage.path().await?, "/dashboard/plan");
    browser.click("button[name=tier][value=starter]").await?;
    let next = stage.world.api.get(CALL, Some(&key)).await?;
    assert_eq!((next.status.as_u16(), next.header("x-ratelimit-limit")), (200, Some("30")));
    browser.click("form[action='/dashboard/plan/cancel'] button").await?;
    assert!(browser.text("main").await?.contains("Paid until"));
    assert_eq!(stage.status(&key).await?, 200);
    Ok(())
}

#[tokio::test]
async fn a_person_ends_another_session_reads_the_log_and_leaves() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    let browser = &stage.browser;
    stage.sign_up(WHO).await?;
    let key = stage.create_key("k").await?;
    let folder = stage.world.app.folder().join("other");
    std::fs::create_dir_all(&folder)?;
    let other = Browser::start(&folder, BrowserOptions::default()).await?.context("a second browser")?;
    other.open(&format!("{}/sign-in", stage.world.api.base_url)).await?;
    other.fill("#email", WHO).await?;
    other.fill("#password", PASSWORD).await?;
    other.click("main button[type=submit]").await?;
    assert!(other.url().await?.ends_with("/dashboard"));
    stage.open("/dashboard/account").await?;
    browser.click("form[action='/dashboard/sessions/end'] button").await?;
    assert!(browser.text("[role=status]").await?.contains("ended"));
    other.open(&format!("{}/dashboard", stage.world.api.base_url)).await?;
    assert!(other.url().await?.contains("/sign-in"));

    stage.open("/dashboard/log").await?;
    let log = browser.text("main").await?;
    for said in ["Account made", "Key created", "Signed in", "Session ended"] {
        assert!(log.contains(said), "{said}: {log}");
    }
    stage.open("/dashboard/account").await?;
    browser.fill("#present-3", PASSWORD).await?;
    browser.click("form[action='/dashboard/delete'] button").await?;
    assert_eq!(stage.path().await?, "/?done=account-deleted");
    let said = browser.text("main > :first-child").await?;
    assert_eq!(said, "The account is deleted. Calls with its keys are refused from now on.");
    assert_eq!(stage.status(&key).await?, 401);
    stage.open("/dashboard").await?;
    assert!(stage.path().await?.starts_with("/sign-in"));
    Ok(())
}

/// The browser runs no scripts. A user must still be able to create, replace and delete keys, upgrade, and sign out and
/// in.
#[tokio::test]
async fn a_person_without_scripts_does_the_same() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions { without_scripts: true }).await? else { return Ok(()) };
    let browser = &stage.browser;
    stage.open("/").await?;
    stage.sign_up(WHO).await?;
    let key = stage.create_key("no scripts").await?;
    assert_eq!(stage.status(&key).await?, 200);
    stage.open("/dashboard/keys").await?;
    browser.click("td .actions a").await?;
    browser.click("main form button[type=submit]").await?;
    let new = browser.text("#secret").await?;
    assert_eq!(stage.status(&new).await?, 200);
    stage.open("/dashboard/keys").await?;
    browser.click("tbody tr:last-child td .actions a.danger").await?;
    browser.click("button.danger").await?;
    assert!(browser.text("[role=status]").await?.contains("deleted"));
    assert_eq!(stage.status(&new).await?, 401);
    stage.open("/dashboard/plan").await?;
    browser.click("button[name=tier][value=premium]").await?;
    browser.text("[role=status]").await?;
    assert_eq!(stage.world.api.get(CALL, Some(&key)).await?.header("x-ratelimit-limit"), Some("100"));
    browser.click("form[action='/sign-out'] button").await?;
    assert_eq!(stage.path().await?, "/");
    stage.open("/dashboard").await?;
    browser.fill("#email", WHO).await?;
    browser.fill("#password", PASSWORD).await?;
    browser.click("main button[type=submit]").await?;
    assert_eq!(stage.path().await?, "/dashboard");
    Ok(())
}
