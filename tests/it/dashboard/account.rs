//! Tests of the account pages, and of the operator's commands for the same tasks.

use anyhow::{Context, Result};
use harness::TestApp;
use serde_json::{Value, json};

use super::open;
use super::visitor::{PASSWORD, Person};
use crate::api_world::check;

const WHO: &str = "who@example.com";

async fn run(app: &TestApp, arguments: &[&str]) -> Result<Value> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    app.api(&arguments).await?.success()?.json()
}

async fn sign_in(api: &harness::Api, password: &str) -> Result<Person> {
    let mut person = Person::at(api)?;
    person.post("/sign-in", &[("email", WHO), ("password", password)]).await?;
    Ok(person)
}

#[tokio::test]
async fn another_session_is_ended() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let mut other = sign_in(&api, PASSWORD).await?;
    assert_eq!(other.get("/dashboard").await?.status, 200);
    let page = person.get("/dashboard/account").await?;
    let id = page.between("name=\"id\" value=\"", "\"")?.to_owned();
    let ended = person.fill("/dashboard/account", "/dashboard/sessions/end", &[("id", &id)]).await?;
    assert_eq!(ended.location(), "/dashboard/account?done=session-ended");
    assert_eq!(other.get("/dashboard").await?.status, 303);
    assert_eq!(person.get("/dashboard").await?.status, 200);

    // The operator's commands for the same tasks.
    let sessions = run(&app, &["account", "sessions", WHO]).await?;
    assert_eq!(sessions.as_array().map(Vec::len), Some(1));
    assert_eq!(run(&app, &["account", "sessions", WHO, "--end-all"]).await?, json!([]));
    assert_eq!(person.get("/dashboard").await?.status, 303);
    Ok(())
}

#[tokio::test]
async fn password_and_address_change_with_the_present_password() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let mut other = sign_in(&api, PASSWORD).await?;
    const PAGE: &str = "/dashboard/account";
    let wrong = [("present", "wrong horse battery"), ("password", "a better horse")];
    assert_eq!(person.fill(PAGE, "/dashboard/password", &wrong).await?.status, 422);
    let mut thief = person.clone();
    let right = [("present", PASSWORD), ("password", "a better horse")];
    let changed = person.fill(PAGE, "/dashboard/password", &right).await?;
    assert_eq!(changed.location(), "/dashboard/account?done=password-changed");
    assert_eq!(other.get("/dashboard").await?.status, 303, "every other session ends");
    assert_eq!(thief.get("/dashboard").await?.status, 303, "a copy of this one's cookie too");
    assert_eq!(person.get("/dashboard").await?.status, 200);
    assert_eq!(sign_in(&api, PASSWORD).await?.cookie, None);

    app.create_account("taken@example.com", "free").await?;
    for (email, said) in [("taken@example.com", "already"), ("nobody", "not an email address")] {
        let fields = [("present", "a better horse"), ("email", email)];
        let page = person.fill(PAGE, "/dashboard/address", &fields).await?;
        assert!(page.status == 422 && page.has(said), "{}", page.text);
    }
    let mut thief = person.clone();
    let fields = [("present", "a better horse"), ("email", "New@example.com")];
    person.fill(PAGE, "/dashboard/address", &fields).await?;
    assert_eq!(thief.get("/dashboard").await?.status, 303);
    assert!(person.get(PAGE).await?.has("new@example.com"));
    check(&run(&app, &["account", "show", "new@example.com"]).await?, json!({ "tier": "free" }));
    run(&app, &["account", "rename", "new@example.com", WHO]).await?;
    assert!(person.get(PAGE).await?.has(WHO));
    Ok(())
}

#[tokio::test]
async fn a_disabled_account_is_out_at_once_and_back_when_enabled() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let key = person.create_key("k").await?;
    let call =
        async || Ok::<_, anyhow::Error>(api.get("/v1/stocks?limit=1", Some(&key)).await?.status.as_u16());
    assert_eq!(call().await?, 200);
    assert!(!run(&app, &["account", "disable", WHO]).await?["disabled_at"].is_null());
    assert_eq!(call().await?, 401);
    assert_eq!(person.get("/dashboard").await?.status, 303);
    assert_eq!(sign_in(&api, PASSWORD).await?.cookie, None);
    run(&app, &["account", "enable", WHO]).await?;
    assert_eq!(call().await?, 200);
    assert_eq!(person.get("/dashboard").await?.status, 303, "its sessions do not come back");
    assert!(sign_in(&api, PASSWORD).await?.cookie.is_some());
    Ok(())
}

#[tokio::test]
async fn the_log_tells_all_of_it() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    person.create_key("laptop").await?;
    person.fill("/dashboard/plan", "/dashboard/plan", &[("tier", "starter")]).await?;
    person.fill("/dashboard/plan", "/dashboard/plan/cancel", &[]).await?;
    run(&app, &["account", "set-tier", WHO, "premium"]).await?;
    let log = person.get("/dashboard/log").await?;
    for said in [
        "Account made",
        "Signed in",
        "Key created",
        "laptop",
        "Upgraded",
        "Plan cancelled",
        "Plan set",
        "you",
        "the operator",
    ] {
        assert!(log.has(said), "{said}: {}", log.text);
    }
    let history = run(&app, &["audit", WHO]).await?;
    let of = |action: &str| -> Result<Value> {
        let rows = history.as_array().context("rows")?;
        rows.iter().find(|row| row["action"] == action).cloned().with_context(|| action.to_owned())
    };
    assert_eq!(of("key.create")?["actor"], "account");
    assert_ne!(of("account.set_tier")?["actor"], "account");
    assert!(!history.to_string().contains("argon2") && !history.to_string().contains("dds_live_"));
    Ok(())
}
