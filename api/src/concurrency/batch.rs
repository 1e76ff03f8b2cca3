//! Batches of requests to Postgres. A larger batch costs less per request.

use futures::FutureExt;
use tokio::sync::mpsc::Receiver;

/// Maximum number of task yields before a batch is sent. During each yield, new requests can join the batch.
const PASSES: usize = 4;

/// Lets other ready tasks run, so that they can add their requests to a batch of at most `limit` requests.
pub(crate) async fn gather<T>(waiting: &mut Receiver<T>, batch: &mut Vec<T>, limit: usize) {
    for _ in 0..PASSES {
        tokio::task::yield_now().await;
        let room = limit.saturating_sub(batch.len());
        if room == 0 || waiting.recv_many(batch, room).now_or_never().is_none_or(|joined| joined == 0) {
            break;
        }
    }
}
