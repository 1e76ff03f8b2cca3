use super::*;

#[test]
fn old_servers_are_told_from_new_ones() {
    assert!(version_of("2.9.25") < Some(MINIMUM_SERVER));
    assert!(version_of("2.10.0") >= Some(MINIMUM_SERVER));
    assert!(version_of("2.12.1-RC.1") >= Some(MINIMUM_SERVER));
    assert!(version_of("junk") < Some(MINIMUM_SERVER));
}

#[test]
fn credentials_do_not_reach_messages() {
    assert_eq!(redact("nats://user:secret@h:4222,nats://i:1"), "nats://h:4222,nats://i:1");
}
