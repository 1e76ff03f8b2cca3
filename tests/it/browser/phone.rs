//! Tests of the pages on a phone screen. Tabs and error messages are in view, the header is low, and no table scrolls
//! sideways.

use anyhow::{Result, ensure};
use harness::{BrowserOptions, Screen};

use super::Stage;

const WHO: &str = "phone@example.com";
const PHONE: Screen = Screen { width: 360, height: 740, dark: false };

async fn is_in_view(stage: &Stage, selector: &str) -> Result<bool> {
    let script = format!(
        "const box = document.querySelector(\"{selector}\").getBoundingClientRect();
         return box.height > 0 && box.left >= 0 && box.right <= innerWidth && box.top >= 0 && box.bottom <= innerHeight"
    );
    Ok(stage.browser.run(&script).await? == true)
}

#[tokio::test]
async fn the_selected_tab_is_in_view_and_tables_are_lines() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    stage.browser.show_on(PHONE).await?;
    stage.sign_up(WHO).await?;
    stage.create_key("A nightly report with a rather long name for a key").await?;
    let tabs = ["", "/keys", "/portfolios", "/usage", "/plan", "/account", "/log"]
        .map(|page| format!("/dashboard{page}"));
    let public = ["/plans", "/", "/s/COLA", "/s/COLA/why/increase_streak_years"];
    for path in tabs.iter().map(String::as_str).chain(public) {
        stage.open(path).await?;
        let header = stage.browser.run("return document.querySelector('header').offsetHeight").await?;
        ensure!(header.as_i64().is_some_and(|height| (60..=120).contains(&height)), "{path}: {header} px");
        let width = stage.browser.run("return document.documentElement.scrollWidth").await?;
        ensure!(width == 360, "{path}: the page is {width} px wide");
        ensure!(
            public.contains(&path) || is_in_view(&stage, ".menu a[aria-current]").await?,
            "{path}: the selected tab"
        );
        let wide = "return [...document.querySelectorAll('.scroll:has(> .stack)')].filter(box => box.scrollWidth > box.clientWidth).length";
        assert_eq!(stage.browser.run(wide).await?, 0, "{path}: a table scrolls sideways");
    }
    Ok(())
}

#[tokio::test]
async fn a_list_has_a_line_a_row_and_two_on_a_phone() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    let tallest =
        "return Math.max(...[...document.querySelectorAll('.wide tbody tr')].map(row => row.offsetHeight))";
    for (screen, most) in [(Screen { width: 1440, height: 900, dark: false }, 40), (PHONE, 60)] {
        stage.browser.show_on(screen).await?;
        for path in ["/screener?preset=all", "/sectors/consumer-staples", "/search?q=company"] {
            stage.open(path).await?;
            let height = stage.browser.run(tallest).await?.as_i64().unwrap_or_default();
            ensure!((1..=most).contains(&height), "{path}, {} px wide: {height} px", screen.width);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_wrong_password_is_said_where_it_was_typed() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    stage.browser.show_on(PHONE).await?;
    stage.sign_up(WHO).await?;
    for (form, field) in [("delete", "#present-3"), ("address", "#present-2")] {
        stage.open("/dashboard/account").await?;
        stage.browser.fill(field, "not the password").await?;
        if field == "#present-2" {
            stage.browser.fill("#email", "other@example.com").await?;
        }
        stage.browser.click(&format!("form[action='/dashboard/{form}'] button")).await?;
        assert_eq!(stage.browser.text("[role=alert]").await?, "That is not your present password.");
        ensure!(is_in_view(&stage, "[role=alert]").await?, "{form}: the error is out of view");
        ensure!(is_in_view(&stage, field).await?, "{form}: the field is out of view");
    }
    // If a key's name is taken, the error is shown at the form, which is below the table of keys.
    stage.open("/dashboard/keys").await?;
    stage.create_key("laptop").await?;
    stage.open("/dashboard/keys").await?;
    stage.browser.fill("#name", "laptop").await?;
    stage.browser.click("form[action='/dashboard/keys'] button[type=submit]").await?;
    stage.browser.text("[role=alert]").await?;
    ensure!(is_in_view(&stage, "[role=alert]").await?, "the error is out of view");
    Ok(())
}
