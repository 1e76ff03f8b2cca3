use async_nats::jetstream::stream::Config;
use serde_json::{Value, json};

use super::*;

fn info(replicas: usize, peers: &Value) -> Info {
    let config = Config { name: "MARKET".to_owned(), num_replicas: replicas, ..Config::default() };
    serde_json::from_value(json!({
        "config": config,
        "created": "2024-06-28T00:00:00Z",
        "ts": "2024-06-28T00:00:00Z",
        "state": {
            "messages": 9, "bytes": 9, "first_seq": 1, "first_ts": "2024-06-28T00:00:00Z",
            "last_seq": 9, "last_ts": "2024-06-28T00:00:00Z", "consumer_count": 0,
        },
        "cluster": { "name": "c", "leader": "node-0", "replicas": peers },
    }))
    .unwrap()
}

fn peer(name: &str, current: bool, offline: bool, lag: u64) -> Value {
    json!({ "name": name, "current": current, "offline": offline, "active": 1, "lag": lag })
}

#[test]
fn a_replica_that_is_offline_behind_or_missing_is_named() {
    let shown = |replicas, peers: Value| {
        find_lagging_replicas(&info(replicas, &peers)).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(shown(1, json!([])).is_empty());
    let (current, behind) = (peer("node-1", true, false, 0), peer("node-2", false, false, 7));
    assert!(shown(3, json!([current, peer("node-2", true, false, 0)])).is_empty());
    let expected = ["the replica on node-2 is not current, 7 operations behind"];
    assert_eq!(shown(3, json!([current, behind])), expected);
    let expected = ["the replica on node-2 is offline"];
    assert_eq!(shown(3, json!([current, peer("node-2", true, true, 0)])), expected);
    assert_eq!(shown(3, json!([current])), ["a replica has no server"]);
}
