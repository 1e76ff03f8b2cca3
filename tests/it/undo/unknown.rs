//! Tests of undone loads that were the only ones with a symbol, or with prices.

use super::*;

/// Fails if a symbol is still listed after all its rows are undone. Also fails if the symbol is not listed again after
/// a new row is loaded.
#[tokio::test]
async fn a_symbol_that_only_an_undone_load_had_is_unknown() -> Result<()> {
    let app = TestApp::start().await?;
    let file = |name: &'static str, symbol: &str, columns: &str, rest: &str| {
        vec![(name, format!("symbol,{columns}\n{symbol},{rest}\n"))]
    };
    let price = ("date,close", "2024-03-14,60");
    load(&app, "right", &file("prices.csv", "KO", price.0, price.1)).await?;
    let phantom = [
        file("prices.csv", "DIV.BX", price.0, price.1),
        file("dividends.csv", "DIV.BX", "ex_date,amount", "2024-03-14,0.485"),
        file("securities.csv", "DIV.BX", "name,type", "Div,stock"),
    ];
    let run = load(&app, "wrong", &phantom.concat()).await?;
    let listed = async || -> Result<Vec<String>> {
        app.catch_up().await?;
        let query =
            "select symbol from read_g1.stocks union all select symbol from read_g1.symbols order by 1";
        app.sql(query, &[]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    };
    assert_eq!(listed().await?, ["DIV.BX", "DIV.BX", "KO", "KO"]);
    undo(&app, &run, &[]).await?;
    assert_eq!(listed().await?, ["KO", "KO"]);
    let (api, key) = (app.api_serve().await?, app.key("premium").await?);
    assert_eq!(api.get("/v1/stocks/DIV.BX", Some(&key)).await?.status, 404);
    load(&app, "after", &file("prices.csv", "DIV.BX", price.0, "2024-03-14,61")).await?;
    assert_eq!(listed().await?, ["DIV.BX", "DIV.BX", "KO", "KO"]);
    Ok(())
}

/// An undo of all prices leaves a market without a market date: nothing is served, until a load brings prices.
#[tokio::test]
async fn an_undo_of_every_price_leaves_nothing_served() -> Result<()> {
    let (app, empty) = (TestApp::start().await?, TestApp::start().await?);
    let dividends = [("dividends.csv", "symbol,ex_date,amount\nKO,2024-03-14,0.485\n".to_owned())];
    market(&app, "12", "3")?;
    let loaded = load_folder(&app, "test", "market").await?;
    let run = loaded["run"].as_str().context("a summary names its run")?;
    app.catch_up().await?;
    for app in [&app, &empty] {
        load(app, "dividends", &dividends).await?;
    }
    let before = tables(&app).await?;
    undo(&app, run, &[]).await?;
    equal_tables(&tables(&app).await?, &tables(&empty).await?, "only dividends are left")?;
    app.ingest(&["release", run]).await?.success()?;
    equal_tables(&tables(&app).await?, &before, "the market is back")
}
