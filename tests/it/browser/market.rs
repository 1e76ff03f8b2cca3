//! Tests of what a user does on the market pages, with and without scripts.

use std::time::Duration;

use anyhow::{Result, ensure};
use harness::BrowserOptions;

use super::Stage;

const ENTER: char = '\u{e007}';

/// Searches for a security, opens its page and the explanation of its yield, and enters holdings.
async fn look_around(stage: &Stage) -> Result<()> {
    let browser = &stage.browser;
    stage.open("/").await?;
    browser.fill(".search input", "cola").await?;
    browser.click(".search button").await?;
    assert_eq!(stage.path().await?, "/s/COLA");
    let page = browser.text("main").await?;
    for said in ["Cola Company", "At a glance", "Dividends by year", "2:1"] {
        ensure!(page.contains(said), "{said}: {page}");
    }
    let block = "section[aria-labelledby=figures] .source";
    ensure!(!browser.text(block).await?.contains("GET"), "the call is folded");
    browser.click(&format!("{block} summary")).await?;
    ensure!(browser.text(block).await?.contains("GET /v1/stocks/COLA/metrics"), "the call of the block");
    browser.click(".picks a[href*='range=10y']").await?;
    ensure!(stage.path().await?.contains("range=10y"), "{}", stage.path().await?);
    let drawn = "const line = document.querySelector('.price path.line').getBoundingClientRect(); return line.width > 200 && line.height > 20";
    assert_eq!(browser.run(drawn).await?, true, "the line is drawn");
    browser.click("#dividend_yield .why").await?;
    assert_eq!(stage.path().await?, "/s/COLA/why/dividend_yield");
    ensure!(browser.text("main").await?.contains("Formula"), "the formula");

    browser.click("nav[aria-label=Market] a[href='/income']").await?;
    browser.fill("#text", "COLA 120 6000\nNOPE 3").await?;
    browser.click("main form button[type=submit]").await?;
    let page = browser.text("main").await?;
    for said in ["Twelve months", "Yield on cost", "NOPE is not a known symbol.", "Jun 2024"] {
        ensure!(page.contains(said), "{said}: {page}");
    }

    browser.click(".picks a[href='/income/transactions']").await?;
    browser.fill("#text", "2024-01-03 COLA 50").await?;
    browser.click("#entered .actions button").await?;
    let page = browser.text("main").await?;
    for said in ["Received so far this year\n110.00 USD", "By month", "Received in all"] {
        ensure!(page.contains(said), "{said}: {page}");
    }
    let first = "tbody tr:first-child time";
    let newest = browser.text(&format!("section[aria-labelledby=payments] {first}")).await?;
    browser.click("button[name=sort][value='payment_date.asc']").await?;
    let oldest = browser.text(&format!("section[aria-labelledby=payments] {first}")).await?;
    ensure!(oldest == "28 Mar 2024" && newest != oldest, "{newest} {oldest}");
    Ok(())
}

/// The pointer and the arrow keys choose a value of a chart, and its text is shown above the chart.
#[tokio::test]
async fn a_chart_shows_the_value_at_the_pointer_and_at_the_arrow_keys() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    let browser = &stage.browser;
    stage.open("/s/COLA?range=1y").await?;
    let newest = browser.text(".price .reading").await?;
    ensure!(newest.starts_with("14 Jun 2024: ") && newest.contains(" USD"), "{newest}");
    browser.run("document.querySelector('.price .values').focus()").await?;
    let (left, home) = ('\u{e012}', '\u{e011}');
    browser.press(&left.to_string()).await?;
    let before = browser.text(".price .reading").await?;
    ensure!(before.starts_with("13 Jun 2024: ") && before.contains("ex-date 13 Jun 2024"), "{before}");
    browser.press(&home.to_string()).await?;
    let first = browser.text(".price .reading").await?;
    ensure!(first.contains(" 2023: "), "{first}");
    let spoken = "return document.querySelector('.price .values').getAttribute('aria-valuetext')";
    assert_eq!(browser.run(spoken).await?, first.as_str());
    let move_pointer = "const chart = document.querySelector('.price .values'); chart.scrollIntoView();
         const box = chart.getBoundingClientRect();
         chart.dispatchEvent(new PointerEvent('pointermove', { clientX: box.right, clientY: box.top + 9 }))";
    browser.run(move_pointer).await?;
    assert_eq!(browser.text(".price .reading").await?, newest);
    Ok(())
}

#[tokio::test]
async fn a_person_looks_around() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    look_around(&stage).await?;
    // The slash key moves the focus to the search field on every page. The Enter key opens the page of the typed
    // symbol.
    stage.open("/s/FUND").await?;
    stage.browser.press(&format!("/brk.b{ENTER}")).await?;
    harness::eventually(Duration::from_secs(120), async || {
        ensure!(stage.path().await? == "/s/BRK.B", "{}", stage.path().await?);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_person_without_scripts_looks_around() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions { without_scripts: true }).await? else { return Ok(()) };
    // Scripts of the pages are disabled, but the driver still runs the script that measures the chart.
    look_around(&stage).await
}
