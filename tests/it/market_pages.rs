//! Market pages in a browser without scripts: access to the pages, and agreement of their figures with the API.

mod access;
mod calendar;
mod cells;
mod currency;
mod equal_figures;
mod income;
mod portfolios;
mod quality;
mod screener;
mod security;
mod transactions;

use anyhow::{Result, ensure};

use crate::api_world::World;
use crate::dashboard::visitor::{Page, Person};

/// Settings of a service whose market pages are public and show the whole history.
pub(crate) const PUBLIC: [(&str, &str); 4] =
    [("PAGES", "public"), ("PAGES_TIER", "professional"), ("SIGN_UP", "open"), ("BILLING", "self_service")];

async fn page(world: &World, path: &str) -> Result<Page> {
    let page = Person::at(&world.api)?.get(path).await?;
    ensure!(page.status == 200, "{path}: {} {}", page.status, page.text);
    Ok(page)
}

/// Returns the values of all `<data>` and `<time>` elements after the text `before`.
fn values_after<'a>(page: &'a Page, before: &str) -> Vec<&'a str> {
    let rest = page.text.split_once(before).map_or("", |(_, rest)| rest);
    let values = rest.split(['<', '>']).filter_map(|tag| {
        tag.strip_prefix("data value=\"").or(tag.strip_prefix("time datetime=\""))?.split('"').next()
    });
    values.collect()
}
