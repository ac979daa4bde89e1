//! Terminals outlive the server.

use serde_json::json;

use super::Desk;

#[test]
fn terminals_outlive_the_server() {
    let mut desk = Desk::new();
    desk.open(
        "counter",
        "n=0; while read line; do n=$((n+1)); echo $n: $line; done",
    );
    desk.enter("counter", "before");
    desk.sees("counter", "1: before");
    desk.restart();
    desk.sees("counter", "1: before");
    desk.send("counter", json!({ "text": "after\n" }));
    desk.sees("counter", "2: after");
}
