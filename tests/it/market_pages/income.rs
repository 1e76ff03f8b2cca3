//! Income page, where a person enters holdings and reads the expected income.

use anyhow::{Context, Result};

use super::PUBLIC;
use crate::api_world::World;
use crate::dashboard::visitor::{Page, Person};

const BROKER: &str = "\"Positions for account XXXX-1234 as of 06/17/2024\"\n\n\
    \"Symbol\",\"Description\",\"Qty (Quantity)\",\"Price\",\"Mkt Val (Market Value)\",\"Cost Basis\"\n\
    \"COLA\",\"COLA COMPANY\",\"1,120\",\"$55.10\",\"$61,712.00\",\"$40,000.50\"\n\
    \"NOPE\",\"UNKNOWN\",\"3\",\"$1.00\",\"$3.00\",\"--\"\n\
    \"Account Total\",\"--\",\"--\",\"--\",\"$62,658.00\",\"$40,000.50\"\n";

/// Posts the form as `multipart/form-data`, as a browser does for a file.
async fn upload(person: &mut Person, text: &str, file: &str) -> Result<Page> {
    let part = |name: &str, more: &str, content: &str| {
        format!("--frontier\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{content}\r\n")
    };
    let body = part("text", "", text)
        + &part("file", "; filename=\"p.csv\"\r\nContent-Type: text/csv", file)
        + "--frontier--\r\n";
    person.send_body("/income", "multipart/form-data; boundary=frontier", body).await
}

#[tokio::test]
async fn a_person_pastes_or_uploads_and_reads_the_sums() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut person = Person::at(&world.api)?;
    let answer = world.json("/v1/portfolio/income?holdings=COLA:1120:40000.5,NOPE:3&decimals=string").await?;
    let income = answer["data"]["totals"][0]["income"].as_str().context("a sum")?.to_owned();
    for page in [
        upload(&mut person, "", BROKER).await?,
        person.post("/income", &[("text", BROKER)]).await?,
        person.post("/income", &[("text", "COLA 1120 40000.50\nNOPE 3")]).await?,
        person.get("/income?holdings=COLA:1120:40000.5,NOPE:3").await?,
    ] {
        assert_eq!(page.status, 200, "{}", page.text);
        let shown = page.between("data-sum=\"income\"><data value=\"", "\"")?;
        assert_eq!(shown, income);
        for said in [
            "What is missing",
            "<strong>NOPE</strong> is not a known symbol.",
            "Yield on cost",
            "Confirmed",
            "Dec 2024",
        ] {
            assert!(page.has(said), "{said}: {}", page.text);
        }
    }
    assert!(upload(&mut person, "", BROKER).await?.has("Line 6: no number of shares of Account Total"));
    for text in ["", "hello world", "COLA"] {
        let page = person.post("/income", &[("text", text)]).await?;
        assert!(
            page.status == 200 && page.has("No line has a symbol and a number of shares"),
            "{text}: {}",
            page.text
        );
    }
    let many = (0..101).map(|number| format!("S{number} 1\n")).collect::<String>();
    assert!(person.post("/income", &[("text", &many)]).await?.has("has more than 100 holdings"));
    let sheet = person.post("/income.csv", &[("holdings", "COLA:120")]).await?;
    assert!(sheet.status == 200 && sheet.text.starts_with("symbol,id,ex_date"), "{}", sheet.text);
    assert!(person.post("/income.csv", &[("holdings", "x")]).await?.status == 422);
    // The entered holdings do not appear in the log of the API.
    assert!(!world.api.process.log().contains("1120"), "{}", world.api.process.log());
    Ok(())
}
