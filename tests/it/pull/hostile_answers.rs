//! Hostile answers of a vendor: redirects and next-page addresses into the operator's network, and answers that never
//! end. Answers are also never written through a symbolic link.

use std::time::Duration;

use anyhow::Result;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Redirect, Response};
use harness::TestApp;
use serde_json::json;

use super::vendor::Vendor;
use super::{manifest, pull};

const FILE: &str = "name = \"prices\"\npath = \"/prices.csv\"\nending = \"csv\"\n";
const LIST: &str =
    "name = \"dividends\"\npath = \"/list\"\nending = \"json\"\npaging = { next_url = \"/next_url\" }\n";

#[tokio::test]
async fn an_answer_leads_to_no_address_of_the_operator_s_network() -> Result<()> {
    let inner = Vendor::start(|_, _| "symbol,date,close\nKO,2024-03-14,1\n".into_response()).await?;
    let app = TestApp::start().await?;
    let port = inner.address.rsplit(':').next().unwrap_or_default().to_owned();
    for target in [
        "http://169.254.169.254/latest/meta-data".to_owned(),
        "http://10.0.0.1/prices.csv".to_owned(),
        "http://[fe80::1]/prices.csv".to_owned(),
        "http://2852039166/prices.csv".to_owned(),
        format!("http://[::ffff:127.0.0.1]:{port}/prices.csv"),
        format!("http://localhost:{port}/prices.csv"),
    ] {
        let to = target.clone();
        let vendor = Vendor::start(move |asked, _| match asked.path.as_str() {
            "/list" => {
                let row = r#"{"ticker":"KO","ex_dividend_date":"2024-03-14","cash_amount":0.485}"#;
                format!(r#"{{"results":[{row}],"next_url":"{to}"}}"#).into_response()
            }
            _ => Redirect::temporary(&to).into_response(),
        })
        .await?;
        for request in [FILE, LIST] {
            let path = manifest(&app, &vendor, "", request)?;
            let (code, pulled) = pull(&app, &[&path]).await?;
            let reason = pulled["failed"][0]["reason"].as_str().unwrap_or_default();
            assert!(code == 2 && reason.contains("its address is private or local"), "{target}: {pulled}");
        }
    }
    assert!(inner.asked().is_empty(), "{:?}", inner.asked());
    // A host that the manifest lists may have a private address.
    let to = format!("http://localhost:{port}/prices.csv");
    let vendor = Vendor::start(move |_, _| Redirect::temporary(&to).into_response()).await?;
    let path = manifest(&app, &vendor, "hosts = [\"localhost\"]\n", FILE)?;
    let (code, pulled) = pull(&app, &[&path]).await?;
    assert_eq!((code, &pulled["rows"]), (0, &json!({ "price": 1 })), "{pulled}");
    Ok(())
}

/// Returns an endless response of one byte every 50 ms.
fn drip() -> Response {
    let bytes = futures::stream::unfold((), async |()| {
        tokio::time::sleep(Duration::from_millis(50)).await;
        Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
    });
    Body::from_stream(bytes).into_response()
}

#[tokio::test]
async fn an_answer_that_drips_is_given_up() -> Result<()> {
    let app = TestApp::start().await?;
    let vendor = Vendor::start(|_, _| drip()).await?;
    let path = manifest(&app, &vendor, "", FILE)?;
    let arguments = [path.as_str(), "--timeout", "1s", "--patience", "0s"];
    let (code, pulled) = tokio::time::timeout(Duration::from_secs(60), pull(&app, &arguments)).await??;
    let reason = pulled["failed"][0]["reason"].as_str().unwrap_or_default();
    assert!(code == 2 && reason.contains("the answer is too slow"), "{pulled}");
    Ok(())
}

#[tokio::test]
async fn answers_are_written_through_no_link() -> Result<()> {
    let app = TestApp::start().await?;
    let vendor = Vendor::start(|_, _| "no table".into_response()).await?;
    let path = manifest(&app, &vendor, "", FILE)?;
    let elsewhere = app.folder().join("elsewhere");
    std::fs::create_dir_all(&elsewhere)?;
    // The folder of the connector, or a folder in it, is a symbolic link.
    for name in ["vendor", "vendor/refused"] {
        let linked = app.folder().join("pulled").join(name);
        let _ = std::fs::remove_file(&linked);
        std::fs::create_dir_all(linked.parent().unwrap_or(&linked))?;
        std::os::unix::fs::symlink(&elsewhere, &linked)?;
        let refused = super::pull_with(&app, &[&path], &[]).await?;
        assert!(refused.code == 2 && refused.stderr.contains("is a link"), "{name}: {}", refused.stderr);
        assert_eq!(std::fs::read_dir(&elsewhere)?.count(), 0, "{name}");
        std::fs::remove_file(&linked)?;
    }
    // A symbolic link in the place of a file is replaced, and its target stays unchanged.
    let (refused, victim) = (app.folder().join("pulled/vendor/refused"), app.folder().join("victim"));
    std::fs::create_dir_all(&refused)?;
    std::fs::write(&victim, "kept")?;
    for name in ["prices-prices.csv", "prices-prices.csv.reason.txt"] {
        std::os::unix::fs::symlink(&victim, refused.join(name))?;
    }
    assert_eq!(pull(&app, &[&path]).await?.0, 2);
    assert_eq!(std::fs::read_to_string(&victim)?, "kept");
    assert_eq!(std::fs::read_to_string(refused.join("prices-prices.csv"))?, "no table");
    Ok(())
}
