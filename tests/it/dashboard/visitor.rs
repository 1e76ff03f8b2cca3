//! A simulated person with a browser that stores the session cookie, follows no redirect, and runs no script.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::Api;
use reqwest::header::{HeaderMap, LOCATION, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder};

pub(crate) const PASSWORD: &str = "correct horse battery";

#[derive(Debug, Clone)]
pub(crate) struct Person {
    client: Client,
    base: String,
    /// Session cookie as `name=value`.
    pub(crate) cookie: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(crate) fn location(&self) -> &str {
        self.header(LOCATION.as_str())
    }

    pub(crate) fn between(&self, before: &str, after: &str) -> Result<&str> {
        let found = self.text.split_once(before).and_then(|(_, rest)| rest.split_once(after));
        Ok(found.with_context(|| format!("no {before:?} in {}", self.text))?.0)
    }

    /// Returns the CSRF token of the page's forms.
    pub(crate) fn token(&self) -> Result<String> {
        Ok(self.between("name=\"token\" value=\"", "\"")?.to_owned())
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.text.contains(text)
    }
}

impl Person {
    pub(crate) fn at(api: &Api) -> Result<Self> {
        let client = harness::client_builder()?;
        let client = client.redirect(Policy::none()).timeout(Duration::from_secs(120)).build()?;
        Ok(Self { client, base: api.base_url.clone(), cookie: None })
    }

    pub(crate) async fn signed_up(api: &Api, email: &str) -> Result<Self> {
        let mut person = Self::at(api)?;
        let page = person.post("/sign-up", &[("email", email), ("password", PASSWORD)]).await?;
        ensure!(
            (page.status, page.location()) == (303, "/dashboard?done=signed-up"),
            "{} {}",
            page.status,
            page.text
        );
        Ok(person)
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Page> {
        let request = self.client.get(format!("{}{path}", self.base));
        self.send(request.header("accept", "text/html,application/xhtml+xml")).await
    }

    /// Posts a form. Unlike [`Person::fill`], this function adds no CSRF token.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Result<Page> {
        self.post_with(path, fields, &[]).await
    }

    pub(crate) async fn post_with(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Result<Page> {
        let body: String = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", encoded(value)))
            .collect::<Vec<_>>()
            .join("&");
        let mut request = self.client.post(format!("{}{path}", self.base)).body(body);
        request = request.header("content-type", "application/x-www-form-urlencoded");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request).await
    }

    pub(crate) async fn send_body(&mut self, path: &str, media_type: &str, body: String) -> Result<Page> {
        let request = self.client.post(format!("{}{path}", self.base)).body(body);
        self.send(request.header("content-type", media_type)).await
    }

    /// Loads `page`, and posts `fields` with the page's CSRF token to `path`.
    pub(crate) async fn fill(&mut self, page: &str, path: &str, fields: &[(&str, &str)]) -> Result<Page> {
        let token = self.get(page).await?.token()?;
        let with_token: Vec<(&str, &str)> =
            [("token", token.as_str())].into_iter().chain(fields.iter().copied()).collect();
        self.post(path, &with_token).await
    }

    pub(crate) async fn create_key(&mut self, name: &str) -> Result<String> {
        let fields = [("name", name), ("life", "90")];
        let page = self.fill("/dashboard/keys", "/dashboard/keys", &fields).await?;
        ensure!(page.status == 200, "{} {}", page.status, page.text);
        Ok(page.between("<code id=\"secret\">", "</code>")?.to_owned())
    }

    async fn send(&mut self, mut request: RequestBuilder) -> Result<Page> {
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        if let Some(set) = headers.get(SET_COOKIE) {
            let pair = set.to_str()?.split(';').next().unwrap_or_default().to_owned();
            self.cookie = Some(pair).filter(|pair| !pair.ends_with('='));
        }
        Ok(Page { status, headers, text: response.text().await? })
    }
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect()
}
