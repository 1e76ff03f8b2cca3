//! The id of the request that a task works on, for its log lines and for the body of a 500.

tokio::task_local! {
    static REQUEST_ID: String;
}

/// Runs a request's work under its id.
pub(crate) async fn scope<F: Future>(id: String, work: F) -> F::Output {
    REQUEST_ID.scope(id, work).await
}

/// The id of the request this task works on; empty outside of any.
pub(crate) fn request_id() -> String {
    REQUEST_ID.try_with(Clone::clone).unwrap_or_default()
}
