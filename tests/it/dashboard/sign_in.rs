//! Tests of sign-up, sign-in, one-time links, and the lifetime of a session.

use anyhow::{Context, Result, ensure};
use harness::TestApp;

use super::open;
use super::visitor::{PASSWORD, Person};

const WHO: &str = "who@example.com";

async fn link(app: &TestApp, arguments: &[&str]) -> Result<String> {
    let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
    let made = app.api(&arguments).await?.success()?.json()?;
    let link = made["link"].as_str().context("a link")?;
    Ok(link.split_once("8080").context("a path")?.1.to_owned())
}

#[tokio::test]
async fn a_person_signs_up_out_and_in() -> Result<()> {
    let (_app, api) = open().await?;
    let mut person = Person::signed_up(&api, "Who@Example.com").await?;
    let overview = person.get("/dashboard").await?;
    assert!(overview.status == 200 && overview.has(WHO), "{}", overview.text);
    let out = person.fill("/dashboard", "/sign-out", &[]).await?;
    assert_eq!((out.status, out.location()), (303, "/"));
    assert_eq!(person.cookie, None);
    let asked = person.get("/dashboard/usage").await?;
    assert_eq!(asked.location(), "/sign-in?next=%2Fdashboard%2Fusage");
    assert!(person.get(asked.location()).await?.has("value=\"/dashboard/usage\""));
    let fields = [("email", WHO), ("password", PASSWORD), ("next", "/dashboard/usage")];
    assert_eq!(person.post("/sign-in", &fields).await?.location(), "/dashboard/usage");
    assert_eq!(person.get("/sign-up").await?.location(), "/dashboard", "who is in need not sign up");
    Ok(())
}

#[tokio::test]
async fn mistakes_in_signing_up_are_said() -> Result<()> {
    let (_app, api) = open().await?;
    Person::signed_up(&api, WHO).await?;
    let mut person = Person::at(&api)?;
    for (email, password, said) in [
        ("nobody", PASSWORD, "not an email address"),
        ("new@example.com", "short", "12 to 128 characters"),
        ("new@example.com", "password1234", "too common"),
        ("newcomer@example.com", "newcomer's own", "contains your address"),
    ] {
        let page = person.post("/sign-up", &[("email", email), ("password", password)]).await?;
        assert!(
            page.status == 422 && page.between("role=\"alert\">", "</p>")?.contains(said),
            "{said}: {}",
            page.text
        );
        assert!(
            page.has(&format!("value=\"{email}\"")) && !page.has(password),
            "what was typed stays, but the password"
        );
    }
    Ok(())
}

#[tokio::test]
async fn where_sign_up_is_closed_the_operator_invites() -> Result<()> {
    let app = TestApp::start().await?;
    let closed = app.api_serve().await?;
    let mut person = Person::at(&closed)?;
    let fields = [("email", WHO), ("password", PASSWORD)];
    assert_eq!(person.post("/sign-up", &fields).await?.status, 422);
    assert!(person.get("/sign-up").await?.has("ask for an invitation"));
    let path = link(&app, &["account", "invite", WHO, "--tier", "starter"]).await?;
    assert_eq!(person.get(&path).await?.status, 404, "closed is closed");

    let invited = app.api_serve_with(&[("SIGN_UP", "invited")]).await?;
    let mut person = Person::at(&invited)?;
    assert_eq!(person.post("/sign-up", &fields).await?.status, 422);
    // A mail program may open the link before the reader does. This must not use up the link.
    for _ in 0..3 {
        assert!(person.get(&path).await?.has("You are invited"));
    }
    assert_eq!(person.post(&path, &[("password", "short")]).await?.status, 422);
    assert_eq!(person.post(&path, &[("password", PASSWORD)]).await?.location(), "/dashboard");
    assert!(person.get("/dashboard").await?.has("Starter plan"));
    assert_eq!(Person::at(&invited)?.post(&path, &[("password", PASSWORD)]).await?.status, 404, "once");
    let again = app.api(&["account", "invite", WHO]).await?;
    assert!(again.code != 0 && again.stderr.contains("already"), "{}", again.stderr);
    Ok(())
}

#[tokio::test]
async fn a_reset_link_sets_a_password_and_ends_every_session() -> Result<()> {
    let (app, api) = open().await?;
    let mut lost = Person::signed_up(&api, WHO).await?;
    let first = link(&app, &["account", "reset", WHO]).await?;
    let path = link(&app, &["account", "reset", WHO, "--hours", "1"]).await?;
    let mut person = Person::at(&api)?;
    assert_eq!(person.get(&first).await?.status, 404, "a new link ends the one before");
    assert!(person.get(&path).await?.has("Choose a new password"));
    assert_eq!(person.post(&path, &[("password", "another horse battery")]).await?.location(), "/dashboard");
    assert_eq!(lost.get("/dashboard").await?.status, 303);
    let fields = [("email", WHO), ("password", PASSWORD)];
    assert_eq!(Person::at(&api)?.post("/sign-in", &fields).await?.status, 422, "the old one is gone");

    let late = link(&app, &["account", "reset", WHO]).await?;
    app.sql("update accounts.links set expires_at = now()", &[]).await?;
    assert_eq!(person.get(&late).await?.status, 404);
    // An account that the operator created has no password until a reset link sets one.
    app.create_account("made@example.com", "free").await?;
    let path = link(&app, &["account", "reset", "made@example.com"]).await?;
    assert_eq!(Person::at(&api)?.post(&path, &[("password", PASSWORD)]).await?.location(), "/dashboard");
    Ok(())
}

#[tokio::test]
async fn a_reset_link_ends_with_whatever_it_was_made_for() -> Result<()> {
    let (app, api) = open().await?;
    let mut person = Person::signed_up(&api, WHO).await?;
    let spent = async |path: &str| Ok::<_, anyhow::Error>(Person::at(&api)?.get(path).await?.status);
    const PAGE: &str = "/dashboard/account";

    let path = link(&app, &["account", "reset", WHO]).await?;
    let fields = [("present", PASSWORD), ("password", "another horse battery")];
    person.fill(PAGE, "/dashboard/password", &fields).await?;
    assert_eq!(spent(&path).await?, 404, "the password was changed");

    let path = link(&app, &["account", "reset", WHO]).await?;
    app.api(&["account", "rename", WHO, "new@example.com"]).await?.success()?;
    assert_eq!(spent(&path).await?, 404, "the address was changed");

    let path = link(&app, &["account", "reset", "new@example.com"]).await?;
    app.api(&["account", "disable", "new@example.com"]).await?.success()?;
    app.api(&["account", "enable", "new@example.com"]).await?.success()?;
    assert_eq!(spent(&path).await?, 404, "the account was disabled");
    Ok(())
}

#[tokio::test]
async fn a_session_ends_by_itself() -> Result<()> {
    let (app, api) = open().await?;
    for ended in ["seen_at = now() - interval '31 minutes'", "created_at = now() - interval '721 minutes'"] {
        let email = format!("{}@example.com", &ended[..4].replace(' ', ""));
        let mut person = Person::signed_up(&api, &email).await?;
        app.sql("update accounts.sessions set seen_at = now() - interval '29 minutes'", &[]).await?;
        assert_eq!(person.get("/dashboard").await?.status, 200);
        let seen: bool = app.sql_value("select seen_at > now() - interval '1 minute' from accounts.sessions order by id desc limit 1").await?;
        ensure!(seen, "use keeps it open");
        app.sql(&format!("update accounts.sessions set {ended}"), &[]).await?;
        assert_eq!(person.get("/dashboard").await?.status, 303, "{ended}");
    }
    Ok(())
}

#[tokio::test]
async fn without_a_dashboard_there_are_the_plans_alone() -> Result<()> {
    let app = TestApp::builder().env("DASHBOARD", "off").start().await?;
    let api = app.api_serve().await?;
    let mut person = Person::at(&api)?;
    for path in ["/", "/dashboard", "/sign-in", "/sign-up", "/link/x"] {
        let page = person.get(path).await?;
        assert!(
            page.status == 404 && page.has("Page not found") && !page.has("href=\"/sign-in"),
            "{path}: {}",
            page.text
        );
        let program = api.get(path, None).await?;
        assert!(
            program.status == 404 && program.text().starts_with("{\"error\""),
            "{path}: {}",
            program.text()
        );
    }
    assert!(person.get("/plans").await?.has("Ask the operator"));
    Ok(())
}

#[tokio::test]
async fn signing_up_with_an_existing_address_gets_the_response_of_a_new_one() -> Result<()> {
    let (app, api) = open().await?;
    Person::signed_up(&api, WHO).await?;
    let mut answers = Vec::new();
    let mut second = Person::at(&api)?;
    for (email, person) in [("new@example.com", &mut Person::at(&api)?), (WHO, &mut second)] {
        let page =
            person.post("/sign-up", &[("email", email), ("password", "another horse battery")]).await?;
        let names: Vec<String> = page.headers.keys().map(ToString::to_string).collect();
        let cookies: Vec<usize> =
            page.headers.get_all("set-cookie").iter().map(|cookie| cookie.len()).collect();
        answers.push((page.status, page.location().to_owned(), page.text.clone(), names, cookies));
    }
    assert_eq!(answers[0], answers[1]);
    // The sign-up with the existing address opened no session and changed nothing.
    let asked = second.get(&answers[1].1).await?;
    assert!(asked.location().starts_with("/sign-in"), "{}", asked.location());
    let form = second.get(asked.location()).await?;
    let above = form.text.split_once("<form method=\"post\"").context("a form")?.0;
    assert!(above.contains("If the address had an account before"), "{}", form.text);
    assert!(form.status == 200 && form.has("value=\"/dashboard\""), "{}", form.text);
    let right = [("email", WHO), ("password", PASSWORD)];
    assert_eq!(Person::at(&api)?.post("/sign-in", &right).await?.status, 303);
    assert_eq!(app.sql_value::<i64>("select count(*) from accounts.accounts").await?, 2);
    Ok(())
}
