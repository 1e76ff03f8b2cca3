//! Page for purchases and sales: sums, charts, tables and files of the dividends received and expected.

use anyhow::{Context, Result};
use reqwest::Method;

use super::PUBLIC;
use super::calendar::lines;
use crate::api_world::World;
use crate::dashboard::visitor::{Page, Person};

const PATH: &str = "/income/transactions";
/// Purchase before the split 2:1 of March 2024. The dividends of 2024 are 1.10 USD a share.
const LIST: &str = "2024-01-03 COLA 50\n\nCOLA 2024-01-04 5 101.5 USD my ira\n2024-01-04 NOPE 1";
const CSV: &str = "account,symbol,date,quantity,price,currency\n,COLA,2024-01-03,50,,\n\
    my ira,COLA,2024-01-04,5,101.5,USD\n,NOPE,2024-01-04,1,,\n";

/// Response body of the endpoint for `CSV`.
pub(super) async fn endpoint(world: &World, query: &str, csv: &str) -> Result<String> {
    let headers = [("x-api-key", world.professional.clone()), ("content-type", "text/csv".to_owned())];
    let path = format!("/v1/portfolio/dividends?{query}");
    let reply = world.api.send_body(Method::POST, &path, &headers, csv.as_bytes().to_vec()).await?;
    anyhow::ensure!(reply.status == 200, "{}", reply.text());
    Ok(reply.text())
}

fn sum<'a>(page: &'a Page, name: &str) -> Result<&'a str> {
    page.between(&format!("data-sum=\"{name}\"><data value=\""), "\"")
}

/// Calendar lines without the time of creation.
pub(super) fn lasting_lines(file: &str) -> Vec<String> {
    lines(file).into_iter().filter(|line| !line.starts_with("DTSTAMP")).collect()
}

/// First cells of the rows of the payments.
fn holdings(page: &Page) -> Result<Vec<String>> {
    let table = page.between("Table: payments", "</table>")?;
    let rows = table.split("<th class=\"name\" scope=\"row\">").skip(1);
    let cells = rows.map(|row| row.split("</td>").take(1).collect::<String>());
    Ok(cells.map(|cell| cell.split("datetime=\"").nth(1).unwrap_or_default()[..10].to_owned()).collect())
}

#[tokio::test]
async fn a_person_pastes_transactions_and_reads_what_was_received_and_is_expected() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut person = Person::at(&world.api)?;
    let empty = person.get("/income").await?;
    assert!(empty.has("href=\"/income/transactions\">What I bought and sold"), "{}", empty.text);
    assert!(person.get(PATH).await?.has("aria-current=\"true\">What I bought and sold"));
    let part = |name: &str, content: &str| {
        format!(
            "--frontier\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"f\"\r\n\r\n{content}\r\n"
        )
    };
    let upload = [part("text", "x"), part("file", CSV), "--frontier--\r\n".to_owned()].concat();
    for page in [
        person.post(PATH, &[("text", LIST)]).await?,
        person.post(PATH, &[("text", CSV)]).await?,
        person.send_body(PATH, "multipart/form-data; boundary=frontier", upload).await?,
    ] {
        // 110 shares of today: March is paid, June and September are declared, December and March are estimated.
        assert_eq!((page.status, sum(&page, "this_year")?), (200, "121"), "{}", page.text);
        let projected: f64 = 2.0 * 121.0;
        assert!(sum(&page, "expected")?.parse::<f64>()? > 2.0 * 121.0 + 0.9 * projected, "{}", page.text);
        assert_eq!(page.between("of it declared: <data value=\"", "\"")?, "242");
        assert_eq!(sum(&page, "received")?, "121");
        for said in [
            "</span>Received</li>",
            "</span>Expected</li>",
            "Dividends by month in USD, received and expected",
            "Dividends by year in USD, received and expected",
            "<title>Mar 24: 121 USD</title>",
            "<rect class=\"answered\"",
            "<rect class=\"light\"",
            "<strong>NOPE</strong> is not a known symbol.",
            "By account",
            "without an account",
            "<code>POST /v1/portfolio/dividends</code>",
        ] {
            assert!(page.has(said), "{said}: {}", page.text);
        }
        assert!(!page.has("id=\"reconciliation\"") && !page.has("After tax"), "{}", page.text);
    }
    let fields = [("text", LIST), ("tax", "US:15,*:0")];
    let taxed = person.post(PATH, &fields).await?;
    assert!(taxed.has("After tax") && taxed.has("value=\"US:15,*:0\""), "{}", taxed.text);
    let sheet = person.post(&format!("{PATH}.csv"), &fields).await?;
    assert_eq!(sheet.text, endpoint(&world, "format=csv&tax=US:15,*:0", CSV).await?);
    assert_eq!(sheet.header("content-disposition"), "attachment; filename=\"dividends.csv\"");
    let calendar = person.post(&format!("{PATH}.ics"), &fields).await?;
    assert_eq!(calendar.header("content-type"), "text/calendar; charset=utf-8");
    let direct = endpoint(&world, "format=ics&tax=US:15,*:0", CSV).await?;
    assert_eq!(lasting_lines(&calendar.text), lasting_lines(&direct));
    assert!(direct.contains("SUMMARY:COLA pays 110 USD for 100 shares\r\n"), "{direct}");
    Ok(())
}

#[tokio::test]
async fn the_payments_are_sorted_by_a_button() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut person = Person::at(&world.api)?;
    let text = [("text", "2024-01-03 COLA 50")];
    let newest_first = holdings(&person.post(PATH, &text).await?)?;
    let page = person.post(PATH, &[text[0], ("sort", "payment_date.asc")]).await?;
    let oldest_first = holdings(&page)?;
    assert_eq!(oldest_first.first().map(String::as_str), Some("2024-03-28"));
    assert_eq!(newest_first, oldest_first.iter().rev().cloned().collect::<Vec<_>>());
    let heading = page.between("aria-sort=\"ascending\">", "</th>")?;
    assert!(heading.contains("form=\"entered\" name=\"sort\" value=\"payment_date.desc\""), "{heading}");
    Ok(())
}

#[tokio::test]
async fn a_mistake_is_named_with_its_line() -> Result<()> {
    let world = World::start_with(&PUBLIC).await?;
    let mut person = Person::at(&world.api)?;
    for (text, said) in [
        ("", "Enter at least one purchase."),
        ("2024-01-03 COLA 50\n\n2024-01-03 COLA many", "Line 3: quantity "),
        ("symbol,date,quantity\nCOLA,2024-01-03,1\nCOLA,3.1.2024,1\n", "Line 3: date is not a date"),
        (
            "2024-01-03 COLA 50\n2024-01-04 COLA -51",
            "Line 2: quantity sells more shares than the account has",
        ),
        ("hello world\n1 2", "column"),
    ] {
        let page = person.post(PATH, &[("text", text)]).await?;
        let alert = page.between("role=\"alert\">", "</p>").context(text.to_owned())?;
        assert!(page.status == 200 && alert.contains(said), "{text}: {alert}");
        assert!(page.between("<textarea", "</textarea>")?.ends_with(text), "the text stays: {}", page.text);
    }
    let both = person.post(PATH, &[("text", "2024-01-03 COLA x\n2024-01-03 COLA y")]).await?;
    let alert = both.between("role=\"alert\">", "</p>")?;
    assert!(alert.contains("Line 1: ") && alert.contains("\nLine 2: "), "{alert}");
    let tax = person.post(PATH, &[("text", LIST), ("tax", "15")]).await?;
    assert!(tax.between("role=\"alert\">", "</p>")?.starts_with("tax has an item"), "{}", tax.text);
    let file = person.post(&format!("{PATH}.ics"), &[("text", "2024-01-03 COLA x")]).await?;
    assert!(file.status == 422 && file.has("Line 1: quantity"), "{}", file.text);
    assert_eq!(person.get(&format!("{PATH}.csv")).await?.location(), PATH);
    let long = format!("symbol,date,quantity\n{}", "COLA,2024-01-03,1\n".repeat(10_001));
    assert!(person.post(PATH, &[("text", &long)]).await?.has("has 10001 lines"));
    Ok(())
}
