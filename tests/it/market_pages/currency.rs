//! Pages with amounts in the currency that a reader chooses: dividends, comparison, calendar and income (R42).

use anyhow::Result;
use harness::{Api, TestApp};

use super::PUBLIC;
use crate::converted_amounts::{MARKET, TODAY};
use crate::dashboard::visitor::{Page, Person};
use crate::undo::load;

/// Rates of the euro. No rate is known at the ex-date of `KO`.
const EUROS: &str = "date,base,quote,rate\n2024-06-18,EUR,USD,1.25\n2024-06-27,EUR,USD,1.25\n";
const TOOLTIP: &str = "value=\"0.4\" title=\"0.5 USD × 0.8 (test 2024-06-18)\"";
const NO_RATE: &str = "title=\"no exchange rate of USD is known\">no rate</span>";

async fn market() -> Result<(TestApp, Api, String)> {
    let app = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
    load(&app, "market", &MARKET.map(|(name, text)| (name, text.to_owned()))).await?;
    load(&app, "euros", &[("fx.csv", EUROS.to_owned())]).await?;
    app.catch_up().await?;
    let (api, key) = (app.api_serve_with(&PUBLIC).await?, app.key("professional").await?);
    Ok((app, api, key))
}

async fn show(api: &Api, path: &str) -> Result<Page> {
    let page = Person::at(api)?.get(path).await?;
    assert_eq!(page.status, 200, "{path}: {}", page.text);
    Ok(page)
}

#[track_caller]
fn check(page: &Page, texts: &[&str]) {
    for text in texts {
        assert!(page.has(text), "{text}: {}", page.text);
    }
}

#[tokio::test]
async fn a_security_has_its_dividends_in_the_chosen_currency() -> Result<()> {
    let (app, api, key) = market().await?;
    let page = show(&api, "/s/USDF?range=1y&with=KO&currency=eur").await?;
    let dividends = page.between("id=\"dividends\"", "</section>")?;
    assert!(dividends.contains(TOOLTIP), "{dividends}");
    assert!(dividends.contains(">Declared</th>") && dividends.contains("value=\"0.5\""), "{dividends}");
    assert!(dividends.contains("<option value=\"EUR\" selected>"), "{dividends}");
    let comparison = page.between("Table: comparison", "</table>")?;
    // The price of 40 pounds is 40 × 1.27 / 1.25 euros.
    assert!(
        comparison.contains("value=\"40.64\" title=\"40 GBP × 1.016 (test 2024-06-27)\""),
        "{comparison}"
    );
    check(
        &page,
        &[
            "href=\"/s/USDF?range=max&amp;prices=split&amp;with=KO&amp;currency=EUR#prices\"",
            "<input type=\"hidden\" name=\"currency\" value=\"EUR\">",
            "href=\"/s/USDF/dividends.csv?currency=EUR\"",
        ],
    );
    let sheet = show(&api, "/s/USDF/dividends.csv?currency=EUR").await?;
    let call = "/v1/dividends/history?symbols=USDF&include_projected=true&limit=1000&currency=EUR&format=csv";
    assert_eq!(sheet.text, api.get(call, Some(&key)).await?.text());

    check(&show(&api, "/s/KO?currency=EUR").await?, &[NO_RATE, "value=\"0.485\""]);
    let original = show(&api, "/s/USDF").await?;
    assert!(!original.has("Declared") && !original.has("currency="), "{}", original.text);
    // Every plan has it.
    let free = app.api_serve_with(&[("PAGES", "public")]).await?;
    let page = show(&free, "/s/USDF?currency=EUR").await?;
    check(&page, &[TOOLTIP]);
    Ok(())
}

#[tokio::test]
async fn a_calendar_has_each_amount_in_the_chosen_currency() -> Result<()> {
    let (_app, api, key) = market().await?;
    let page = show(&api, "/calendar?from=2024-06-20&currency=EUR").await?;
    let later = "href=\"/calendar?days=ex&amp;span=month&amp;from=2024-07-01&amp;currency=EUR\"";
    check(&page, &[TOOLTIP, NO_RATE, "<option value=\"EUR\" selected>", later]);
    let sheet = show(&api, "/calendar.csv?from=2024-06-20&currency=EUR").await?;
    let call = "/v1/dividends/ex-dates?start_date=2024-06-01&end_date=2024-06-30&currency=EUR&include_projected=true&limit=500&format=csv";
    assert_eq!(sheet.text, api.get(call, Some(&key)).await?.text());
    let splits = show(&api, "/calendar?days=splits&currency=EUR").await?;
    assert!(splits.has("days=ex&amp;span=month&amp;from=2024-06-01&amp;currency=EUR"), "{}", splits.text);
    Ok(())
}

#[tokio::test]
async fn income_has_one_total_in_the_chosen_currency() -> Result<()> {
    let (_app, api, key) = market().await?;
    let call = "/v1/portfolio/income?holdings=USDF:100,KO:10&currency=EUR";
    let answer = api.get(&format!("{call}&decimals=string"), Some(&key)).await?.json()?;
    let converted = &answer["data"]["converted"];
    let mut person = Person::at(&api)?;
    let typed = [("text", "USDF 100\nKO 10"), ("currency", "EUR")];
    for page in [
        show(&api, "/income?holdings=USDF:100,KO:10&currency=EUR").await?,
        person.post("/income", &typed).await?,
    ] {
        let income = page.between("data-sum=\"income\"><data value=\"", "\"")?;
        assert_eq!(converted["total"]["income"], income, "{}", page.text);
        let said = format!("The sums leave out {} payment", converted["unconverted"]);
        check(
            &page,
            &[
                &said,
                "value=\"40\" title=\"50 USD × 0.8 (test 2024-06-18)\"",
                NO_RATE,
                "Table: income by month, EUR",
                "<input type=\"hidden\" name=\"currency\" value=\"EUR\">",
                "<option value=\"EUR\" selected>",
            ],
        );
        assert!(!page.has("Table: income by month, USD"), "{}", page.text);
    }
    let sheet = person.post("/income.csv", &[("holdings", "USDF:100,KO:10"), ("currency", "EUR")]).await?;
    assert_eq!(sheet.text, api.get(&format!("{call}&format=csv"), Some(&key)).await?.text());
    assert!(sheet.text.contains("converted.amount"), "{}", sheet.text);
    Ok(())
}

#[tokio::test]
async fn received_dividends_have_sums_in_the_chosen_currency() -> Result<()> {
    let (_app, api, _) = market().await?;
    let typed = [("text", "2024-06-01 USDF 100\n2024-06-01 KO 10"), ("currency", "EUR")];
    let page = Person::at(&api)?.post("/income/transactions", &typed).await?;
    assert_eq!(page.between("data-sum=\"expected\"><data value=\"", "\"")?, "40", "{}", page.text);
    check(
        &page,
        &[
            "The sums leave out 1 payment, because no exchange rate to EUR is known.",
            "Dividends by month in EUR, received and expected",
            "Table: by year, EUR",
            "value=\"40\" title=\"50 USD × 0.8 (test 2024-06-18)\"",
            NO_RATE,
            "<option value=\"EUR\" selected>",
        ],
    );
    assert!(!page.has("Dividends by month in USD"), "{}", page.text);
    let unknown = [typed[0], ("currency", "pounds")];
    let page = Person::at(&api)?.post("/income/transactions", &unknown).await?;
    assert!(page.status == 200 && page.has("role=\"alert\"") && page.has("ISO 4217"), "{}", page.text);
    Ok(())
}

#[tokio::test]
async fn an_unknown_currency_is_an_error_of_the_page() -> Result<()> {
    let (_app, api, _) = market().await?;
    let mut person = Person::at(&api)?;
    let said = "Currency is not an ISO 4217 currency code such as USD";
    for path in [
        "/s/USDF?currency=pounds",
        "/s/USDF?currency=GBX",
        "/calendar?currency=E%26R",
        "/calendar?currency=pounds",
    ] {
        let page = person.get(path).await?;
        assert!(page.status == 422 && page.has(said), "{path}: {} {}", page.status, page.text);
    }
    let page = person.get("/income?holdings=KO:1&currency=pounds").await?;
    assert!(page.status == 200 && page.has("role=\"alert\"") && page.has("ISO 4217"), "{}", page.text);
    assert_eq!(
        person.post("/income.csv", &[("holdings", "KO:1"), ("currency", "pounds")]).await?.status,
        422
    );
    Ok(())
}
