//! Tests of the earliest day that each tier may request. Endpoints that return past events must answer for this day,
//! and refuse the day before.

use anyhow::Result;
use serde_json::{Value, json};

use crate::api_world::{World, check};

/// Endpoints that are tested with the free tier. `{}` is replaced by a day.
const FREE: [&str; 8] = [
    "/v1/prices/COLA?start_date={}",
    "/v1/stocks/COLA/splits?start_date={}",
    "/v1/stocks/COLA/metrics?as_of={}",
    "/v1/dividends/history?symbols=COLA&start_date={}",
    "/v1/dividends/calendar?start_date={}&end_date={}",
    "/v1/dividends/ex-dates?start_date={}&end_date={}",
    "/v1/dividends/payment-dates?start_date={}&end_date={}",
    "/v1/splits/calendar?start_date={}&end_date={}",
];

/// Checks that the key may request the day `floor`, but not the day `before`.
async fn holds(world: &World, key: &str, path: &str, floor: &str, before: &str) -> Result<()> {
    let reply = world.api.get(&path.replace("{}", floor), Some(key)).await?;
    assert_eq!(reply.status, 200, "{path} on {floor}: {}", reply.text());
    let (status, body) = world.refused(&path.replace("{}", before), key).await?;
    assert_eq!(status, 403, "{path} on {before}: {body}");
    check(
        &body,
        json!({ "code": "FEATURE_NOT_AVAILABLE", "required_feature": "historical_depth", "earliest_date": floor }),
    );
    Ok(())
}

#[tokio::test]
async fn every_past_event_has_its_floor() -> Result<()> {
    let world = World::start().await?;
    for path in FREE {
        holds(&world, &world.free, path, "2023-06-17", "2023-06-16").await?;
    }
    let dividends = "/v1/stocks/COLA/dividends?start_date={}";
    holds(&world, &world.starter, dividends, "2019-06-17", "2019-06-16").await?;
    let bulk = "/v1/bulk/dividends?symbols=COLA&start_date={}";
    holds(&world, &world.professional, bulk, "1924-06-17", "1924-06-16").await
}

fn years(metrics: &Value) -> Vec<i64> {
    metrics["annual_totals"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|total| total["year"].as_i64())
        .collect()
}

#[tokio::test]
async fn yearly_totals_begin_with_the_first_whole_year() -> Result<()> {
    let world = World::start().await?;
    for (key, first) in [(&world.free, 2024), (&world.starter, 2020), (&world.professional, 1994)] {
        let metrics = world.api.get("/v1/stocks/COLA/metrics", Some(key)).await?.json()?;
        assert_eq!(years(&metrics["data"]), (first..=2024).collect::<Vec<_>>());
        let compared = world.api.get("/v1/compare?symbols=COLA", Some(key)).await?.json()?;
        assert_eq!(years(&compared["data"][0]["metrics"]), (first..=2024).collect::<Vec<_>>());
    }
    Ok(())
}

/// Returns the dates of the listed observations of an explanation, and the number of its older observations.
fn observations(explained: &Value) -> (Vec<&str>, i64) {
    let explanation = &explained["data"]["explanation"];
    let metrics = explanation["metrics"].as_array().into_iter().flatten();
    let (mut dates, mut older) = (Vec::new(), explanation["older_unused"].as_i64().unwrap_or(0));
    for metric in metrics {
        let listed = metric["observations"].as_array().into_iter().flatten();
        dates.extend(listed.filter_map(|seen| seen["date"].as_str()));
        older += metric["older_observations"].as_i64().unwrap_or(0);
    }
    (dates, older)
}

#[tokio::test]
async fn explanations_count_older_observations_and_need_starter() -> Result<()> {
    let world = World::start().await?;
    let path = "/v1/stocks/COLA/metrics?explain=true";
    let (status, body) = world.refused(path, &world.free).await?;
    assert_eq!(status, 403);
    check(
        &body,
        json!({ "code": "FEATURE_NOT_AVAILABLE", "current_tier": "free", "required_feature": "explain" }),
    );

    let cut = world.api.get(path, Some(&world.starter)).await?.json()?;
    let whole = world.json(path).await?;
    let ((cut_dates, cut_older), (dates, older)) = (observations(&cut), observations(&whole));
    assert!(cut_dates.iter().all(|date| *date >= "2019-06-17"), "{cut_dates:?}");
    assert!(dates.contains(&"1994-03-13") && older == 0);
    assert_eq!(cut_dates.len() + usize::try_from(cut_older)?, dates.len());
    Ok(())
}
