//! Transaction exports of brokers. Each file has a purchase of 100 shares, a split 2:1, a sale of 50 shares,
//! dividends, and rows that are not used.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::reconciliation::summary;
use super::{Market, text};

const QUERY: &str = "decimals=string&end_date=2024-07-31";
const PAYMENTS: [&str; 6] = [
    "2023-03-15 100 92",
    "2023-06-15 100 92",
    "2023-09-14 200 92",
    "2023-12-14 150 69",
    "2024-03-14 150 72.75",
    "2024-06-14 150 72.75",
];
const MISSING: [&str; 2] = ["KO 2023-07-03 missing", "KO 2023-10-02 missing"];

/// File with the expected answer.
struct Export {
    text: &'static str,
    broker: &'static str,
    account: Option<&'static str>,
    /// First and last entry of the reconciliation; two payments between them are missing.
    compared: Option<[&'static str; 2]>,
    unused: &'static str,
}

const EXPORTS: [Export; 8] = [
    Export {
        text: include_str!("../../fixtures/brokers/degiro-transactions.csv"),
        broker: "DEGIRO",
        account: None,
        compared: None,
        unused: "Rows of the file that are not used: 2 split",
    },
    Export {
        text: include_str!("../../fixtures/brokers/degiro-account.csv"),
        broker: "DEGIRO",
        account: None,
        compared: Some(["KO 2023-04-03 matched", "KO 2024-01-02 matched"]),
        unused: "Rows of the file that are not used: 1 deposit, 1 exchange, 1 fee, 2 split, 1 tax, 1 text",
    },
    Export {
        text: include_str!("../../fixtures/brokers/degiro-both.csv"),
        broker: "DEGIRO",
        account: None,
        compared: Some(["KO 2023-04-03 matched", "KO 2024-01-02 matched"]),
        unused: "Rows of the file that are not used: 2 trade of another section",
    },
    // The original amount is in dollars before tax; without it, the amount is in euros.
    Export {
        text: include_str!("../../fixtures/brokers/trade-republic.csv"),
        broker: "Trade Republic",
        account: None,
        compared: Some(["KO 2023-04-03 matched", "KO 2024-01-02 different exchange_rate 0.90913"]),
        unused: "Rows of the file that are not used: 1 asset_class CRYPTO, 1 card, 1 split, 1 transfer of cash",
    },
    // 71.09 / (92 - 15 %), 53.32 / (69 - 15 %): the rate of these days is 1.10 dollars for a euro.
    Export {
        text: include_str!("../../fixtures/brokers/pytr.csv"),
        broker: "Trade Republic",
        account: None,
        compared: Some([
            "KO 2023-04-03 different exchange_rate 0.909079 tax 15",
            "KO 2024-01-02 different exchange_rate 0.909122 tax 15",
        ]),
        unused: "Rows of the file that are not used: 1 deposit, 1 interest, 1 split",
    },
    Export {
        text: include_str!("../../fixtures/brokers/fidelity.csv"),
        broker: "Fidelity",
        account: Some("Z00000001"),
        compared: Some(["KO 2023-04-03 matched", "KO 2024-01-02 matched"]),
        unused: "Rows of the file that are not used: 2 cash, 1 option, 1 split, 2 text",
    },
    // 80 + 12, and 69 less 15 %, booked a day later "as of" the payment date.
    Export {
        text: include_str!("../../fixtures/brokers/schwab.csv"),
        broker: "Schwab",
        account: None,
        compared: Some(["KO 2023-04-03 matched", "KO 2024-01-02 different tax_rate tax 15"]),
        unused: "Rows of the file that are not used: 1 interest, 1 split, 1 tax, 1 total, 1 transfer of cash",
    },
    Export {
        text: include_str!("../../fixtures/brokers/trading-212.csv"),
        broker: "Trading 212",
        account: None,
        compared: Some([
            "KO 2023-04-03 different exchange_rate 0.909079 tax 15",
            "KO 2024-01-02 different exchange_rate 0.90913",
        ]),
        unused: "Rows of the file that are not used: 1 deposit, 1 interest, 2 split",
    },
];

/// Ex-date, quantity and gross amount of each payment that is not projected.
fn payments(answer: &Value) -> Vec<String> {
    let rows = answer["data"].as_array().into_iter().flatten();
    let known = rows.filter(|row| row["status"] != "projected");
    known.map(|row| ["ex_date", "quantity", "gross"].map(|name| text(row, name)).join(" ")).collect()
}

fn unused_rows(answer: &Value) -> Option<&str> {
    let mut warnings = answer["meta"]["warnings"].as_array()?.iter();
    warnings.find(|warning| warning["code"] == "unused_rows")?["message"].as_str()
}

impl Market {
    async fn answer_to_file(&self, file: &str) -> Result<Value> {
        let reply = self.post(QUERY, "text/csv", file).await?;
        ensure!(reply.status == 200, "{} {}\n{file}", reply.status, reply.text());
        reply.json()
    }

    /// Places of the errors in a file that is refused.
    async fn errors_of_file(&self, file: &str) -> Result<Vec<String>> {
        let reply = self.post(QUERY, "text/csv", file).await?;
        ensure!(reply.status == 400, "{} {}\n{file}", reply.status, reply.text());
        let answer = reply.json()?;
        Ok(answer["errors"].as_array().context("errors")?.iter().map(|error| text(error, "param")).collect())
    }
}

#[tokio::test]
async fn files_of_brokers_give_their_transactions_and_received_dividends() -> Result<()> {
    let market = Market::start().await?;
    for Export { text: file, broker, account, compared, unused } in EXPORTS {
        let answer = market.answer_to_file(file).await?;
        assert_eq!(
            (&answer["meta"]["broker"], payments(&answer)),
            (&json!(broker), PAYMENTS.map(str::to_owned).to_vec())
        );
        assert_eq!(answer["data"][0]["account"], json!(account), "{broker}");
        let expected =
            compared.map(|[first, last]| [first, MISSING[0], MISSING[1], last].map(str::to_owned).to_vec());
        assert_eq!(summary(&answer), expected, "{broker}");
        assert_eq!(unused_rows(&answer), Some(unused), "{broker}");
    }
    Ok(())
}

#[tokio::test]
async fn a_security_with_several_listings_is_the_one_in_the_currency_of_the_file() -> Result<()> {
    let market = Market::start().await?;
    let listing = json!({ "kind": "security", "symbol": "KOE", "name": "Cola", "type": "stock", "currency": "EUR",
                          "exchange": "XETR", "isin": "US1912161007" });
    market.app.feed("listing.ndjson", listing.to_string()).source("test").today(super::TODAY).load().await?;
    market.app.catch_up().await?;
    let answer = market.answer_to_file(EXPORTS[0].text).await?;
    assert_eq!(payments(&answer), PAYMENTS);
    let warnings = answer["meta"]["warnings"].as_array().context("warnings")?;
    let chosen =
        warnings.iter().find(|warning| warning["code"] == "several_listings").context("a warning")?;
    assert_eq!(text(chosen, "message"), "US1912161007 has several listings; KO (USD) is used");
    // Without a broker's file, the client decides.
    let lines = [",US1912161007,2023-03-01,100"];
    let body = super::transactions(&lines).to_string();
    assert_eq!(market.post("", "application/json", &body).await?.json()?["code"], "AMBIGUOUS_SYMBOL");
    Ok(())
}

#[tokio::test]
async fn a_flex_file_has_trades_transfers_and_cash_in_sections() -> Result<()> {
    let market = Market::start().await?;
    let answer =
        market.answer_to_file(include_str!("../../fixtures/brokers/interactive-brokers.csv")).await?;
    let mut expected = PAYMENTS.map(str::to_owned).to_vec();
    expected.insert(5, "2024-03-28 100 1000".to_owned());
    assert_eq!(payments(&answer), expected);
    assert_eq!(answer["data"][0]["account"], "U0000001");
    // The first payment is in two rows, 60 and 32.
    let compared = [
        "KO 2023-04-03 matched",
        MISSING[0],
        MISSING[1],
        "KO 2024-01-02 different date days 2",
        "KO 2024-04-01 missing",
        "NIP 2024-06-20 matched",
    ];
    assert_eq!(summary(&answer), Some(compared.map(str::to_owned).to_vec()));
    assert_eq!(
        unused_rows(&answer),
        Some(
            "Rows of the file that are not used: 1 AssetClass CASH, 1 AssetClass OPT, 1 LevelOfDetail ORDER, \
             1 LevelOfDetail SUMMARY, 1 interest, 1 tax, 6 text"
        )
    );
    Ok(())
}

#[tokio::test]
async fn a_flex_file_may_have_few_columns_or_marked_lines() -> Result<()> {
    let market = Market::start().await?;
    // Without classes of assets, an exchange of currencies is a trade without an ISIN.
    let few = r#""Buy/Sell","TradeDate","ISIN","Quantity","TradePrice","CurrencyPrimary"
"BUY","2023-03-01","US1912161007","100","60","USD"
"SELL","2023-11-01","US1912161007","-60","31","USD"
"SELL (Ca.)","2023-11-01","US1912161007","10","31","USD"
"SELL","2023-03-01","","-8000","1.1","USD"
"#;
    let answer = market.answer_to_file(few).await?;
    assert_eq!(payments(&answer), PAYMENTS);
    assert_eq!(unused_rows(&answer), Some("Rows of the file that are not used: 1 exchange"));
    let marked = r#""HEADER","TRNT","ClientAccountID","CurrencyPrimary","Symbol","TradeDate","Quantity","TradePrice","Buy/Sell"
"DATA","TRNT","U1","USD","KO","20230301","100","60","BUY"
"DATA","TRNT","U1","USD","KO","20231101","-50","31","SELL"
"HEADER","EQUT","ClientAccountID","CurrencyPrimary","ReportDate","Total"
"DATA","EQUT","U1","USD","20240627","9000.5"
"HEADER","CTRN","ClientAccountID","CurrencyPrimary","Symbol","ReportDate","Amount","Type"
"DATA","CTRN","U1","USD","KO","20230403","92","Dividends"
"DATA","CTRN","U1","USD","KO","20230403","7","New Kind"
"#;
    let answer = market.answer_to_file(marked).await?;
    assert_eq!(payments(&answer), PAYMENTS);
    assert_eq!(summary(&answer), Some(vec!["KO 2023-04-03 matched".to_owned()]));
    assert_eq!(unused_rows(&answer), Some("Rows of the file that are not used: 1 other section, 1 unknown"));
    Ok(())
}

#[tokio::test]
async fn prices_of_a_file_give_a_yield_on_cost() -> Result<()> {
    let market = Market::start().await?;
    let answer = market.answer_to_file(include_str!("../../fixtures/brokers/schwab.csv")).await?;
    // Payments of twelve months: 92 + 92 + 69 + 72.75; the cost of 150 of 200 shares for 6,000 is 4,500.
    assert_eq!(answer["meta"]["totals"]["symbols"][0]["yield_on_cost"], "7.2389", "{answer}");
    Ok(())
}

#[tokio::test]
async fn line_endings_delimiters_and_byte_order_marks_do_not_matter() -> Result<()> {
    let market = Market::start().await?;
    for Export { text: file, .. } in EXPORTS {
        let plain = file.replace('\r', "");
        let expected = market.answer_to_file(&plain).await?;
        for ending in ["\r\n", "\r"] {
            assert_eq!(market.answer_to_file(&plain.replace('\n', ending)).await?, expected, "{ending:?}");
        }
        let marked = format!("\u{feff}{}", plain.trim_end());
        assert_eq!(market.answer_to_file(&marked).await?, expected);
    }
    let pytr = include_str!("../../fixtures/brokers/pytr.csv");
    let tabs = pytr.replace(';', "\t");
    assert_eq!(market.answer_to_file(&tabs).await?, market.answer_to_file(pytr).await?);
    // The numbers of a line are right with every line ending.
    for ending in ["\n", "\r\n", "\r"] {
        let file =
            pytr.replace("\r\n", "\n").replace("01T15:31", "31T15:31").replace("2023-11-31", "2023-13-01");
        assert_eq!(market.errors_of_file(&file.replace('\n', ending)).await?, ["line 6.Datum"], "{ending:?}");
    }
    Ok(())
}

#[tokio::test]
async fn rows_that_cannot_be_read_are_named() -> Result<()> {
    let market = Market::start().await?;
    let file = include_str!("../../fixtures/brokers/trading-212.csv");
    for (right, wrong, param) in [
        ("100.0000000000,60.00,USD,1.0667", "many,60.00,USD,1.0667", "line 3.No. of shares"),
        ("100.0000000000,60.00,USD,1.0667", ",60.00,USD,1.0667", "line 3.No. of shares"),
        ("100.0000000000,60.00,USD,1.0667", "100,60.00,dollars,1.0667", "line 3.Currency (Price / share)"),
        ("2023-03-01 15:30:00.456", "01/03/2023", "line 3.Time"),
        (
            "US1912161007,KO,\"Cola\",100.0000000000,60.00,USD,1.0667",
            "US1912161008,KO,\"Cola\",100,60,USD,1",
            "line 3.ISIN",
        ),
        (
            "US1912161007,KO,\"Cola\",100.0000000000,60.00,USD,1.0667",
            ",,\"Cola\",100,60,USD,1",
            "line 3.ISIN",
        ),
        ("71.09,\"EUR\",13.80", ",\"EUR\",13.80", "line 4.Total"),
        ("Limit sell", "Limit buy", ""),
    ] {
        let file = file.replace(right, wrong);
        if param.is_empty() {
            assert_eq!(payments(&market.answer_to_file(&file).await?)[3], "2023-12-14 250 115");
        } else {
            assert_eq!(market.errors_of_file(&file).await?, [param], "{wrong}");
        }
    }
    // More shares are sold than bought.
    assert_eq!(market.errors_of_file(&file.replace("50.0000000000", "500")).await?, ["line 7.quantity"]);
    // A number in two notations is read as the other numbers of the file.
    let english =
        "Date;Type;Value;Note;ISIN;Shares;Fees;Taxes\n2023-03-01;Buy;-1,250.50;Cola;US1912161007;1,000;;\n";
    assert_eq!(payments(&market.answer_to_file(english).await?)[0], "2023-03-15 1000 920");
    let german = english.replace("1,250.50", "1.250,50").replace("1,000", "1,125");
    assert_eq!(payments(&market.answer_to_file(&german).await?)[0], "2023-03-15 1.125 1.035");
    Ok(())
}

#[tokio::test]
async fn an_unknown_header_names_the_columns_and_the_brokers() -> Result<()> {
    let market = Market::start().await?;
    let schwab = include_str!("../../fixtures/brokers/schwab.csv");
    for file in [
        schwab.replace("\"Fees & Comm\"", "\"Fees\""),
        schwab.replace("\"Symbol\",\"Desc", "\"Ticker\",\"Desc"),
        "symbol,date,qty\nKO,2023-03-01,1\n".to_owned(),
        "symbol,day,quantity\nKO,2023-03-01,1\n".to_owned(),
        "Product,Symbol/ISIN,Quantity,Closing,Local value,,Value in EUR\nCOLA,US1912161007,1,60,USD,60,56\n"
            .to_owned(),
        "\"KO\n".to_owned(),
    ] {
        let reply = market.post(QUERY, "text/csv", &file).await?;
        let error = reply.json()?;
        assert_eq!((reply.status.as_u16(), &error["param"]), (400, &json!("transactions")), "{file}");
        let brokers =
            ["DEGIRO", "Fidelity", "Interactive Brokers", "Schwab", "Trade Republic", "Trading 212"];
        assert_eq!(error["allowed"]["brokers"], json!(brokers), "{error}");
        let message = error["errors"][0]["error"].as_str().context("a message")?;
        for word in ["symbol, date, quantity", "amount", "DEGIRO, Fidelity", "Trading 212"] {
            ensure!(message.contains(word), "{word}: {message}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_file_of_ten_thousand_rows_is_answered() -> Result<()> {
    let market = Market::start().await?;
    let header = include_str!("../../fixtures/brokers/trading-212.csv").lines().next().context("a header")?;
    let row = |number: usize| {
        let (day, month) = (1 + number % 28, 1 + number / 28 % 12);
        match number % 4 {
            0 => format!(
                "Dividend (Ordinary),2024-{month:02}-{day:02} 10:00:00,US1912161007,KO,Cola,1,0.4,USD,,,,0.34,EUR,,,,"
            ),
            1 => format!("Deposit,2023-{month:02}-{day:02} 10:00:00,,,,,,,,,,1,EUR,,,,"),
            _ => "Market buy,2023-03-01 10:00:00,US1912161007,KO,Cola,0.01,60,USD,1,,,0.6,EUR,,,,".to_owned(),
        }
    };
    let rows: Vec<String> = (0..10_001).map(row).collect();
    let answer = market.answer_to_file(&format!("{header}\n{}", rows[..10_000].join("\n"))).await?;
    assert_eq!(payments(&answer)[0], "2023-03-15 50 46");
    assert_eq!(unused_rows(&answer), Some("Rows of the file that are not used: 2500 deposit"));
    ensure!(summary(&answer).is_some_and(|entries| entries.len() > 40), "{answer}");
    assert_eq!(market.errors_of_file(&format!("{header}\n{}", rows.join("\n"))).await?, ["transactions"]);
    Ok(())
}
