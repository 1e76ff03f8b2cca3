//! Tests of every page on a desktop and a phone screen: accessibility, and no page wider than the screen. Another test
//! signs up with the keyboard alone.

use anyhow::{Result, ensure};
use chrono::{TimeDelta, Utc};
use harness::{BrowserOptions, Screen, accessibility_rules};

use super::{PASSWORD, Stage};

const WHO: &str = "person@example.com";
const PUBLIC: [(&str, &str); 31] = [
    ("landing", "/"),
    ("plans", "/plans"),
    ("sign-up", "/sign-up"),
    ("sign-in", "/sign-in"),
    ("docs", "/docs"),
    ("status", "/status"),
    ("methods", "/methods"),
    ("rule", "/methods/R15"),
    ("rule-with-tables", "/methods/R6"),
    ("versions", "/versions"),
    ("not-found", "/nowhere"),
    ("security", "/s/COLA"),
    ("security-ten-years", "/s/COLA?range=10y&prices=raw"),
    ("security-currency", "/s/COLA?with=BRK.B&currency=EUR"),
    ("fund", "/s/FUND"),
    ("held-by-fund", "/s/BRK.B"),
    ("why", "/s/COLA/why/dividend_yield"),
    ("search", "/search?q=company"),
    ("calendar", "/calendar?from=2024-09-20&symbols=COLA"),
    ("calendar-week", "/calendar?days=pay&span=week&from=2024-12-30"),
    ("calendar-month", "/calendar"),
    ("calendar-currency", "/calendar?currency=EUR"),
    ("screener", "/screener?preset=all&min_yield=x"),
    ("screener-rows", "/screener?preset=all"),
    ("sectors", "/sectors"),
    ("sector", "/sectors/consumer-staples"),
    ("quality", "/quality"),
    ("income", "/income"),
    ("transactions", "/income/transactions"),
    ("income-currency", "/income?holdings=COLA:120:6000,BRK.B:10&currency=EUR"),
    ("income-sums", "/income?holdings=COLA:120:6000,BRK.B:10,NOPE:3"),
];
const OWN: [(&str, &str); 9] = [
    ("overview", "/dashboard"),
    ("keys", "/dashboard/keys"),
    ("portfolios", "/dashboard/portfolios"),
    ("usage", "/dashboard/usage"),
    ("plan", "/dashboard/plan"),
    ("account", "/dashboard/account"),
    ("log", "/dashboard/log"),
    ("plans-signed-in", "/plans"),
    ("nothing-here", "/dashboard/nowhere"),
];
const DESKTOP: (u32, u32) = (1440, 900);
const PHONE: (u32, u32) = (360, 740);

/// Shows the current page on two screen sizes in light and dark colors. Returns the violations of the accessibility
/// rules and the screens on which the page is too wide.
async fn look(stage: &Stage, rules: &str, name: &str) -> Result<Vec<String>> {
    let mut found = vec![];
    for (size, (width, height)) in [("desktop", DESKTOP), ("phone", PHONE)] {
        for (scheme, dark) in [("light", false), ("dark", true)] {
            stage.browser.show_on(Screen { width, height, dark }).await?;
            let findings = stage.browser.accessibility(rules).await?;
            found.extend(findings.into_iter().map(|finding| format!("{name} {size} {scheme}: {finding}")));
            let wide = stage.browser.run("return document.documentElement.scrollWidth - innerWidth").await?;
            if wide.as_i64().is_some_and(|wide| wide > 0) {
                found.push(format!("{name} {size}: {wide} px wider than the screen"));
            }
            if let Some(folder) = harness::folder_variable("SCREENSHOTS") {
                std::fs::create_dir_all(&folder)?;
                stage.browser.photograph(&folder.join(format!("{name}-{size}-{scheme}.png"))).await?;
            }
        }
    }
    Ok(found)
}

/// Inserts usage statistics of the last 14 days, with calls of five different outcomes.
async fn fill(stage: &Stage) -> Result<()> {
    let today = Utc::now().date_naive();
    for (outcome, base) in [("answered", 180i64), ("not_found", 9), ("rate", 14), ("plan", 3), ("failed", 1)]
    {
        for back in 0..14i64 {
            let calls = base * (17 - back) / 10 + (back * 37) % (base / 2 + 1);
            stage
                .world
                .app
                .sql(
                    "insert into accounts.calls select k.account_id, $1::date, e.endpoint, k.id, $2::text, $3::bigint, now()
                     from accounts.api_keys k join accounts.accounts a on a.id = k.account_id
                     cross join (values ('/v1/stocks'), ('/v1/stocks/{symbol}/quote')) e (endpoint)
                     where a.email = $4 and k.name = 'laptop'",
                    &[&(today - TimeDelta::days(back)), &outcome, &calls, &WHO],
                )
                .await?;
        }
    }
    stage.world.app.sql("update accounts.limiter set used = 4321 where account_id = (select id from accounts.accounts where email = $1)", &[&WHO]).await?;
    Ok(())
}

/// Inserts traffic of the last 60 days with two days and two hours without any, an incident, and planned work.
async fn fill_status(stage: &Stage) -> Result<()> {
    for statement in [
        "insert into accounts.traffic_minutes
         select m, 400 + extract(minute from m)::bigint, 0
         from generate_series(date_trunc('minute', now()) - interval '60 days', now(), interval '1 minute') m
         where m not between now() - interval '20 days' and now() - interval '18 days'
           and m not between now() - interval '9 hours' and now() - interval '7 hours'",
        "update accounts.traffic_minutes set failures = calls / 2
         where minute between now() - interval '3 hours' and now() - interval '170 minutes'",
        "insert into accounts.traffic_hours
         select date_trunc('hour', now()), name, 9, array_fill(100, array[16]) from unnest(array['pages', 'prices', 'screeners']) name",
        "insert into accounts.maintenance (starts_at, ends_at, description) values
         (now() + interval '2 days', now() + interval '50 hours', 'Upgrade of the database; answers may take a second longer.'),
         (now() - interval '3 days', now() - interval '70 hours', 'Move to new servers')",
    ] {
        stage.world.app.sql(statement, &[]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn every_page_is_accessible_on_every_screen() -> Result<()> {
    let Some(rules) = accessibility_rules()? else { return Ok(()) };
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    fill_status(&stage).await?;
    let mut found = vec![];
    for (name, path) in PUBLIC {
        stage.open(path).await?;
        found.extend(look(&stage, &rules, name).await?);
    }
    enter_transactions(&stage).await?;
    found.extend(look(&stage, &rules, "transactions-sums").await?);
    stage.open("/docs").await?;
    try_quote(&stage).await?;
    found.extend(look(&stage, &rules, "docs-tried").await?);
    stage.sign_up(WHO).await?;
    found.extend(look(&stage, &rules, "empty").await?);
    stage.create_key("laptop").await?;
    found.extend(look(&stage, &rules, "secret").await?);
    stage.open("/dashboard/keys").await?;
    stage.create_key("A nightly report with a rather long name for a key").await?;
    fill(&stage).await?;
    save_portfolio(&stage).await?;
    for (name, path) in OWN {
        stage.open(path).await?;
        found.extend(look(&stage, &rules, name).await?);
    }
    for (name, selector) in [("replace", "td .actions a"), ("delete", "td .actions a.danger")] {
        stage.open("/dashboard/keys").await?;
        stage.browser.click(selector).await?;
        found.extend(look(&stage, &rules, name).await?);
    }
    stage.open("/dashboard/portfolios").await?;
    stage.browser.click("form[action='/dashboard/portfolios/link'] button").await?;
    stage.browser.text("#secret").await?;
    found.extend(look(&stage, &rules, "portfolio-addresses").await?);
    stage.open("/dashboard/keys").await?;
    stage.create_key("laptop").await.expect_err("the name is taken, so no secret is shown");
    found.extend(look(&stage, &rules, "mistake").await?);
    assert!(found.is_empty(), "{found:#?}");
    Ok(())
}

#[tokio::test]
async fn the_keyboard_is_enough() -> Result<()> {
    let Some(stage) = Stage::set(BrowserOptions::default()).await? else { return Ok(()) };
    let (tab, enter) = ('\u{e004}', '\u{e007}');
    stage.open("/sign-up").await?;
    // The first press of the Tab key selects the link that skips the menu.
    stage.browser.press(&format!("{tab}{enter}")).await?;
    stage.browser.press(&format!("{tab}{WHO}{tab}{PASSWORD}{enter}")).await?;
    harness::eventually(std::time::Duration::from_secs(120), async || {
        ensure!(stage.path().await?.starts_with("/dashboard?"), "{}", stage.path().await?);
        Ok(())
    })
    .await?;
    let outline = stage
        .browser
        .run("document.querySelector('main button').focus({ focusVisible: true }); return getComputedStyle(document.activeElement).outlineStyle")
        .await?;
    assert_eq!(outline, "solid", "what has the focus is seen");
    Ok(())
}

async fn enter_transactions(stage: &Stage) -> Result<()> {
    stage.open("/income/transactions").await?;
    let lines = "2015-03-02 COLA 120 41.5 USD ira\n2019-06-03 COLA -20 60 USD ira\n2023-01-03 COLA 35\n2024-01-03 NOPE 3";
    stage.browser.fill("#text", lines).await?;
    stage.browser.fill("#tax", "US:15,*:0").await?;
    stage.browser.click("#entered .actions button").await?;
    stage.browser.text("#years").await?;
    Ok(())
}

async fn save_portfolio(stage: &Stage) -> Result<()> {
    stage.open("/income?holdings=COLA:120:6000,BRK.B:10").await?;
    stage.browser.fill("#name", "Shares of a rather long name for a portfolio").await?;
    stage.browser.click("form[action='/dashboard/portfolios'] button").await?;
    ensure!(stage.path().await? == "/dashboard/portfolios?done=portfolio-saved", "{}", stage.path().await?);
    enter_transactions(stage).await?;
    stage.browser.fill("#name", "Bought").await?;
    stage.browser.click("form[action='/dashboard/portfolios'] button").await?;
    Ok(())
}

async fn try_quote(stage: &Stage) -> Result<()> {
    stage.browser.fill("#key", &stage.world.professional).await?;
    super::reference::press(stage, "stocks_by_symbol_quote").await?;
    super::reference::answered(stage, "stocks_by_symbol_quote").await
}
