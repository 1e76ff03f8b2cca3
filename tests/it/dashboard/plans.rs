//! Tests of an account's plan: upgrades, cancellations, requests to the operator, and the used quota of a deleted
//! account.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::open;
use super::visitor::{PASSWORD, Person};
use crate::api_world::check;
use harness::TestApp;

const WHO: &str = "plans@example.com";
const CALL: &str = "/v1/stocks?limit=1";
const PLAN: &str = "/dashboard/plan";

async fn shown(app: &TestApp) -> Result<Value> {
    app.api(&["account", "show", WHO, "--json"]).await?.success()?.json()
}

#[tokio::test]
async fn the_free_limit_is_explained_and_an_upgrade_holds_at_once() -> Result<()> {
    let (app, api) = open().await?;
    app.sql("update accounts.tiers set monthly_quota = 3 where tier = 'free'", &[]).await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let key = person.create_key("k").await?;
    let mut statuses = vec![];
    for _ in 0..5 {
        statuses.push(api.get(CALL, Some(&key)).await?.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    let refused = api.get(CALL, Some(&key)).await?.json()?;
    let upgrade_url = refused["upgrade_url"].as_str().unwrap_or_default().to_owned();
    assert!(person.get(&upgrade_url).await?.has("href=\"/dashboard/plan\""));

    let usage = person.get("/dashboard/usage").await?;
    assert!(
        usage.has("The month's calls are used up") && usage.has("Upgrade to go on now"),
        "{}",
        usage.text
    );
    let page = person.fill(PLAN, PLAN, &[("tier", "starter")]).await?;
    assert_eq!((page.status, page.location()), (303, "/dashboard/plan?done=upgraded"));
    let next = api.get(CALL, Some(&key)).await?;
    assert_eq!((next.status.as_u16(), next.header("x-ratelimit-limit")), (200, Some("30")));
    // Calls made before the upgrade also count against the quota of the new plan.
    assert_eq!(next.header("x-quota-remaining"), Some("49996"));
    Ok(())
}

#[tokio::test]
async fn less_holds_when_the_paid_month_ends() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let key = person.create_key("k").await?;
    let rate = async || -> Result<String> {
        let reply = api.get(CALL, Some(&key)).await?;
        Ok(reply.header("x-ratelimit-limit").unwrap_or_default().to_owned())
    };
    person.fill(PLAN, PLAN, &[("tier", "professional")]).await?;
    assert_eq!(rate().await?, "300");
    person.fill(PLAN, PLAN, &[("tier", "starter")]).await?;
    assert_eq!(rate().await?, "300", "the month is paid");
    assert!(person.get(PLAN).await?.has("then Starter"));
    check(&shown(&app).await?, json!({ "tier": "professional", "next_tier": "starter" }));
    app.sql("update accounts.accounts set paid_until = now() - interval '1 second'", &[]).await?;
    assert_eq!(rate().await?, "30", "and then it is over, without a job or a restart");
    // The lower plan now has its own paid month, and can be cancelled too.
    let page = person.fill(PLAN, "/dashboard/plan/cancel", &[]).await?;
    assert_eq!(page.location(), "/dashboard/plan?done=cancelled");
    assert!(person.get(PLAN).await?.has("Paid until"));
    check(
        &shown(&app).await?,
        json!({ "tier": "starter", "effective_tier": "starter", "next_tier": "free" }),
    );
    assert_eq!(rate().await?, "30");
    // Until the paid month ends, the plan can be resumed.
    person.fill(PLAN, PLAN, &[("tier", "starter")]).await?;
    check(&shown(&app).await?, json!({ "tier": "starter", "paid_until": null }));
    // The operator's command for the same cancellation.
    app.api(&["account", "set-tier", WHO, "free", "--after-period"]).await?.success()?;
    check(&shown(&app).await?, json!({ "effective_tier": "starter", "next_tier": "free" }));
    Ok(())
}

/// A paid month ends on the day of the month on which the subscription began. In shorter months, it ends on the last
/// day.
#[tokio::test]
async fn a_paid_month_ends_on_the_day_it_began() -> Result<()> {
    let app = TestApp::start().await?;
    for (start, now, end) in [
        ("2024-01-15 10:00", "2024-01-15 10:00", "2024-02-15 10:00"),
        ("2024-01-15 10:00", "2024-02-15 09:59", "2024-02-15 10:00"),
        ("2024-01-15 10:00", "2024-02-15 10:00", "2024-03-15 10:00"),
        ("2024-01-31 00:00", "2024-02-28 12:00", "2024-02-29 00:00"),
        ("2023-01-31 00:00", "2023-02-28 12:00", "2023-03-31 00:00"),
        ("2023-12-31 23:00", "2024-12-31 22:59", "2024-12-31 23:00"),
        ("2024-02-29 00:00", "2025-02-28 12:00", "2025-03-29 00:00"),
    ] {
        let query = format!(
            "select to_char(accounts.period_end('{start} UTC', '{now} UTC') at time zone 'utc', 'YYYY-MM-DD HH24:MI')"
        );
        assert_eq!(app.sql_value::<String>(&query).await?, end, "{start} {now}");
    }
    Ok(())
}

#[tokio::test]
async fn where_the_operator_changes_plans_one_asks() -> Result<()> {
    let app = TestApp::builder().env("SIGN_UP", "open").start().await?;
    let api = app.api_serve().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let page = person.fill(PLAN, PLAN, &[("tier", "premium")]).await?;
    assert_eq!(page.location(), "/dashboard/plan?done=asked");
    assert!(person.get(PLAN).await?.has("You asked for"));
    check(&shown(&app).await?, json!({ "tier": "free", "effective_tier": "free", "wanted_tier": "premium" }));
    app.api(&["account", "set-tier", WHO, "premium"]).await?.success()?;
    check(&shown(&app).await?, json!({ "effective_tier": "premium", "wanted_tier": null }));
    // A cancellation is a request to the operator, as an upgrade is.
    let page = person.fill(PLAN, "/dashboard/plan/cancel", &[]).await?;
    assert_eq!(page.location(), "/dashboard/plan?done=asked");
    let asked = json!({ "effective_tier": "premium", "paid_until": null, "wanted_tier": "free" });
    check(&shown(&app).await?, asked);
    Ok(())
}

#[tokio::test]
async fn what_is_free_cannot_be_cancelled() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let page = person.fill(PLAN, "/dashboard/plan/cancel", &[]).await?;
    assert!(page.status == 422 && page.has("no paid plan to cancel"), "{}", page.text);
    check(&shown(&app).await?, json!({ "effective_tier": "free", "paid_until": null }));
    Ok(())
}

#[tokio::test]
async fn a_deleted_account_gets_no_month_back() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let key = person.create_key("k").await?;
    app.sql("update accounts.limiter set used = 4998", &[]).await?;
    assert_eq!(api.get(CALL, Some(&key)).await?.status, 200);
    let wrong = person.fill("/dashboard/account", "/dashboard/delete", &[("present", "wrong")]).await?;
    assert!(wrong.status == 422 && wrong.has("not your present password"));
    let page = person.fill("/dashboard/account", "/dashboard/delete", &[("present", PASSWORD)]).await?;
    assert_eq!((page.status, page.location()), (303, "/?done=account-deleted"));
    assert_eq!(api.get(CALL, Some(&key)).await?.status, 401);
    assert_eq!(person.get("/dashboard").await?.status, 303, "the session ended");

    let mut again = Person::signed_up(&api, WHO).await?;
    let key = again.create_key("k").await?;
    assert_eq!(api.get(CALL, Some(&key)).await?.header("x-quota-remaining"), Some("0"));
    assert_eq!(api.get(CALL, Some(&key)).await?.status, 429);
    Ok(())
}

async fn entries(app: &TestApp, action: &str) -> Result<i64> {
    let query = "select count(*) from accounts.audit where action = $1";
    Ok(app.sql(query, &[&action]).await?.first().map_or(Ok(0), |row| row.try_get(0))?)
}

#[tokio::test]
async fn changes_of_a_plan_are_few_a_day_and_no_change_is_no_entry() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let token = person.get(PLAN).await?.token()?;
    let mut choose = async |tier: &str| -> Result<u16> {
        Ok(person.post(PLAN, &[("token", token.as_str()), ("tier", tier)]).await?.status)
    };
    for _ in 0..5 {
        assert_eq!(choose("professional").await?, 303);
    }
    assert_eq!((entries(&app, "account.upgrade").await?, entries(&app, "account.resume").await?), (1, 0));
    let mut refused = 0;
    for number in 0..60 {
        let status = choose(if number % 2 == 0 { "starter" } else { "premium" }).await?;
        ensure!([303, 422].contains(&status), "{status}");
        refused += i32::from(status == 422);
    }
    // The limit is fifty changes a day. Of the last ten requests, five are refused, and five ask for the plan that is
    // already chosen.
    assert_eq!((entries(&app, "account.next_tier").await?, refused), (50, 5));
    // The limit does not apply to the operator. A repeated command adds no entry to the audit log.
    for _ in 0..3 {
        app.api(&["account", "set-tier", WHO, "free"]).await?.success()?;
        app.api(&["account", "disable", WHO]).await?.success()?;
    }
    assert_eq!((entries(&app, "account.set_tier").await?, entries(&app, "account.disable").await?), (1, 1));
    Ok(())
}

#[tokio::test]
async fn a_repeated_request_to_the_operator_is_one_entry() -> Result<()> {
    let app = TestApp::builder().env("SIGN_UP", "open").start().await?;
    let api = app.api_serve().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let token = person.get(PLAN).await?.token()?;
    for tier in ["premium", "premium", "starter", "starter", "premium"] {
        assert_eq!(person.post(PLAN, &[("token", token.as_str()), ("tier", tier)]).await?.status, 303);
    }
    assert_eq!(entries(&app, "account.ask").await?, 3);
    Ok(())
}

#[tokio::test]
async fn a_deleted_account_gets_no_minute_back() -> Result<()> {
    let (_app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let key = person.create_key("k").await?;
    let started = std::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(api.get(CALL, Some(&key)).await?.status, 200);
    }
    person.fill("/dashboard/account", "/dashboard/delete", &[("present", PASSWORD)]).await?;
    let key = Person::signed_up(&api, WHO).await?.create_key("k").await?;
    let mut passed = 0;
    while api.get(CALL, Some(&key)).await?.status == 200 {
        passed += 1;
    }
    // The rate limit of the account permits one more call every six seconds.
    let flowed = started.elapsed().as_secs() / 6 + 1;
    assert!(passed <= flowed, "{passed} calls passed in {:?}", started.elapsed());
    Ok(())
}
