//! Market pages as a browser without scripts sees them: who may read them, and that they show the API's own figures.

mod access;
mod calendar;
mod equal_figures;
mod income;
mod portfolios;
mod screener;
mod security;

use anyhow::{Result, ensure};

use crate::api_world::World;
use crate::dashboard::visitor::{Page, Person};

/// Settings of a service whose pages are public and show all of the history.
pub(crate) const PUBLIC: [(&str, &str); 4] =
    [("PAGES", "public"), ("PAGES_TIER", "professional"), ("SIGN_UP", "open"), ("BILLING", "self_service")];

/// The page of a 200.
async fn page(world: &World, path: &str) -> Result<Page> {
    let page = Person::at(&world.api)?.get(path).await?;
    ensure!(page.status == 200, "{path}: {} {}", page.status, page.text);
    Ok(page)
}

/// Values of a page after a text: the machine-readable ones of its numbers and dates.
fn values_after<'a>(page: &'a Page, before: &str) -> Vec<&'a str> {
    let rest = page.text.split_once(before).map_or("", |(_, rest)| rest);
    let values = rest.split(['<', '>']).filter_map(|tag| {
        let value = tag.strip_prefix("data value=\"").or(tag.strip_prefix("time datetime=\""))?;
        value.strip_suffix('"')
    });
    values.collect()
}
