//! Output is never lost, and never fills the disk.

use serde_json::json;

use crate::support::Home;

#[test]
fn a_million_lines_are_all_there() {
    let home = Home::new();
    let result = home.result(&[], "seq 1 1000000; echo FAIL: x; exit 1");
    assert_eq!(result["output"]["lines"], 1_000_001);
    assert_eq!(result["output"]["dropped_bytes"], 0);
    assert!(result["stdout"].as_str().unwrap().ends_with("FAIL: x\n"));
    let lines = home.call(&["output", "@last", "--lines", "500000:500010"]);
    let expected: String = (500_000..=500_010).map(|n| format!("{n}\n")).collect();
    assert_eq!(lines.out, expected);
    assert_eq!(
        home.call(&["output", "@last", "--find", "^FAIL"]).out,
        "1000001:FAIL: x\n"
    );
    let found = home.call(&["output", "@last", "--find", "nowhere"]);
    assert_eq!((found.code, found.out.as_str()), (Some(1), ""));
    let raw = home.call(&["output", "@last", "--raw"]);
    let expected: String = (1..=1_000_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(raw.out, expected + "FAIL: x\n");
}

#[test]
fn a_flood_is_bounded_and_counted() {
    let home = Home::new();
    let server = home.serve_with("[output]\nper_run_mib = 4\n");
    let result = home.result(&[], "seq 1 5000000; echo end");
    let output = &result["output"];
    let bytes: u64 = (1..=5_000_000_u64)
        .map(|n| n.ilog10() as u64 + 2)
        .sum::<u64>()
        + 4;
    assert_eq!(
        (&output["bytes"], &output["lines"]),
        (&json!(bytes), &json!(5_000_001))
    );
    let (kept, dropped) = (
        output["kept_bytes"].as_u64().unwrap(),
        output["dropped_bytes"].as_u64().unwrap(),
    );
    assert_eq!(kept + dropped, bytes);
    assert!(kept <= 4 << 20, "{kept}");
    let disk = on_disk(&home);
    assert!(disk < 5 << 20, "{disk}");
    assert_eq!(
        home.call(&["output", "@last", "--lines", "1:2"]).out,
        "1\n2\n"
    );
    assert_eq!(
        home.call(&["output", "@last", "--lines", "5000000:5000001"])
            .out,
        "5000000\nend\n"
    );
    let middle = home.call(&["output", "@last", "--lines", "2500000"]);
    assert_eq!(
        (middle.out.as_str(), middle.err.as_str()),
        ("", "… lines 2500000 to 2500000 are not kept …\n")
    );
    let memory = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let peak: u64 = memory
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    assert!(peak < 100_000, "the server's memory is flat: {peak} kB");
}

#[test]
fn all_output_together_is_bounded_and_the_oldest_goes_first() {
    let home = Home::new();
    let _server = home.serve_with("[output]\nper_run_mib = 1\ntotal_mib = 4\n");
    let ids: Vec<String> = (0..8)
        .map(|_| {
            home.result(&[], "head -c 1000000 /dev/zero | tr '\\0' x")["command_id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let removed: Vec<bool> = ids
        .iter()
        .map(|id| home.show(id)["output"]["removed"] == true)
        .collect();
    assert!(removed[0] && !removed[7], "{removed:?}");
    assert!(removed.is_sorted_by(|a, b| a >= b), "{removed:?}");
    assert_eq!(home.show(&ids[0])["state"], "succeeded", "the record stays");
    home.assert_audit_verifies();
}

#[test]
fn many_floods_at_once_share_the_bound() {
    let home = Home::new();
    let _server = home.serve_with("[output]\nper_run_mib = 4\ntotal_mib = 8\n");
    // They end together, and each end removes what is too much.
    let flood = "until [ -e go ]; do sleep 0.02; done; head -c 6000000 /dev/zero";
    let runs: Vec<String> = (0..12).map(|_| home.start(flood, json!({}))).collect();
    std::fs::write(home.base().join("go"), "").unwrap();
    for id in &runs {
        home.closed(id);
    }
    // The last to end is tidied up after a moment. Directories themselves count
    // for 4 KiB each.
    crate::support::eventually("within the bound", || on_disk(&home) < (8 << 20) + 150_000);
    // What was removed was counted once: neither too much nor too little is
    // kept from now on.
    let store = rusqlite::Connection::open(home.state().join("weighlock.db")).unwrap();
    crate::support::eventually("the count is that of the record", || {
        let sum = "SELECT sum(kept_bytes) FROM terminal_commands";
        let recorded: u64 = store.query_row(sum, [], |row| row.get(0)).unwrap();
        let (_, counted) = home.api("GET", "/kept", &serde_json::Value::Null);
        counted["outputs"]["bytes"] == recorded
    });
}

#[test]
fn bytes_are_exact_in_the_log_and_safe_on_display() {
    let home = Home::new();
    let result = home.result(&[], "printf 'a\\377b\\033[31m'");
    assert_eq!(result["stdout"], "a\u{FFFD}b\u{1b}[31m");
    let raw = home
        .weighlock(&["output", "@last", "--raw"])
        .output()
        .unwrap();
    assert_eq!(raw.stdout, b"a\xffb\x1b[31m");
}

#[test]
fn binary_output_is_named() {
    let home = Home::new();
    let result = home.result(&[], "head -c 100000 /dev/zero");
    assert_eq!(result["stdout"], "[binary output, 100000 bytes]");
    assert_eq!(result["output"]["binary"], true);
}

#[test]
fn long_output_is_cut_by_the_presets_rule() {
    let home = Home::new();
    for (preset, check) in [
        ("blacklist", "\n\n... (70000 characters truncated) ...\n\n"),
        ("multi-user", "\n…[truncated — 100000 chars total]"),
        ("agents", ""),
    ] {
        let server = home.serve_with(&format!("preset = \"{preset}\"\n"));
        let result = home.result(&["--shell", "bash"], "printf 'é%.0s' {1..100000}");
        let text = result["text"]
            .as_str()
            .or(result["stdout"].as_str())
            .unwrap();
        let (mark, shown) = match preset {
            "blacklist" => (check.chars().count(), 30_000),
            "multi-user" => (check.chars().count(), 5_000),
            _ => (0, 50_000),
        };
        assert_eq!(text.chars().count(), shown + mark, "{preset}");
        assert!(text.contains(check), "{preset}");
        assert_eq!(
            text.chars().filter(|&c| c == 'é').count(),
            shown,
            "{preset}"
        );
        assert_eq!(result["left_out_chars"], 100_000 - shown, "{preset}");
        server.terminate();
    }
}

#[test]
fn output_can_be_read_while_it_comes() {
    let home = Home::new();
    home.run(
        &["--bg"],
        "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second",
    );
    crate::support::eventually("the first line", || {
        home.call(&["output", "@last", "--lines", "1:"]).out == "first\n"
    });
    assert_eq!(home.call(&["output", "@last"]).out, "first\n");
    std::fs::write(home.base().join("go"), "").unwrap();
    assert_eq!(
        home.call(&["output", "@last", "--follow"]).out,
        "first\nsecond\n"
    );
}

/// Bytes that the output of all runs takes, directories included.
fn on_disk(home: &Home) -> u64 {
    let du = std::process::Command::new("du")
        .arg("-sb")
        .args(["runs", "tasks"].map(|dir| home.state().join(dir)))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&du.stdout).into_owned();
    let sizes = said.lines().filter_map(|line| line.split('\t').next());
    sizes.map(|size| size.parse::<u64>().unwrap()).sum()
}
