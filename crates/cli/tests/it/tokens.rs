//! Tokens: who is let in by one, and who no more.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::caller::{Caller, add, add_here, audit};
use crate::support::{Home, eventually};

/// A server with an agent, and the agent's token.
fn coder(home: &Home) -> String {
    add_here(home, "coder", "agent")
}

/// Who a token stands for, or the refusal.
fn who(home: &Home, token: &str) -> (u16, Value) {
    let said = Caller::owner(home).bearing(token).get("/me");
    let field = if said.status == 200 {
        "principal_id"
    } else {
        "code"
    };
    (said.status, said.json()[field].clone())
}

fn is_in(home: &Home, token: &str) -> bool {
    let (status, told) = who(home, token);
    let refused = (status, &told) == (401, &json!("no_token"));
    assert!(
        refused || (status, &told) == (200, &json!("coder")),
        "{told}"
    );
    status == 200
}

/// The coder's tokens as they are listed.
fn tokens(home: &Home) -> Vec<Value> {
    let coder = Caller::owner(home).get("/people/coder").expect(200);
    coder["tokens"].as_array().unwrap().clone()
}

/// Makes one, or does something to one.
fn make(home: &Home, path: &str, body: Value) -> Value {
    let path = format!("/people/coder/tokens{path}");
    Caller::owner(home).post(&path, &body).expect(201)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let found = entries
        .map(|entry| entry.path())
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        });
    found.collect()
}

fn holds(file: &Path, text: &str) -> bool {
    let bytes = std::fs::read(file).unwrap_or_default();
    bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

#[test]
fn a_token_is_shown_once_and_kept_as_a_hash() {
    let home = Home::new();
    let server = home.serve(&[]);
    coder(&home);
    let made = make(&home, "", json!({ "label": "laptop" }));
    let secret = text(&made["token"]).to_owned();
    assert!(is_in(&home, &secret));
    assert_eq!(secret.len(), "wl_".len() + 64, "256 bits");
    assert_eq!(text(&made["prefix"]), &secret[..9]);

    let [listed, first] = &tokens(&home)[..] else {
        panic!("two tokens, the newest first");
    };
    let mut expected = made.clone();
    expected.as_object_mut().unwrap().remove("token");
    expected["last_used_at"] = listed["last_used_at"].clone();
    assert_eq!((listed, &listed["label"]), (&expected, &json!("laptop")));
    assert_eq!(first["label"], "");
    let created = audit(&home, "kind=token.created");
    let told = json!({ "token": made["token_id"], "prefix": made["prefix"], "for": "coder",
                       "label": "laptop", "seconds": null });
    assert_eq!(created[1]["detail"], told);

    // With the database's log still beside it, and without.
    let state = home.state();
    let kept = |secret: &str| files(&state).into_iter().any(|file| holds(&file, secret));
    assert!(state.join("weighlock.db-wal").exists());
    assert!(kept(&secret[..9]), "the beginning is kept");
    assert!(!kept(&secret) && !kept(&secret[3..]));
    assert_eq!(server.terminate(), Some(0));
    assert!(kept(&secret[..9]) && !kept(&secret[3..]));
    let _server = home.serve(&[]);
    assert!(is_in(&home, &secret), "it counts on after a restart");
}

#[test]
fn a_token_ends_when_its_time_is_up() {
    let home = Home::new();
    let _server = home.serve(&[]);
    coder(&home);
    let over = make(&home, "", json!({ "expires_in_seconds": 0 }));
    assert!(!is_in(&home, text(&over["token"])));
    let short = make(&home, "", json!({ "expires_in_seconds": 2 }));
    assert!(is_in(&home, text(&short["token"])));
    eventually("its time is up", || !is_in(&home, text(&short["token"])));
    let age = json!({ "expires_in_seconds": u64::MAX });
    assert!(is_in(&home, text(&make(&home, "", age)["token"])));
}

#[test]
fn a_token_in_the_place_of_another_counts_beside_it_for_a_while() {
    let home = Home::new();
    let _server = home.serve(&[]);
    coder(&home);
    let old = make(
        &home,
        "",
        json!({ "label": "ci", "expires_in_seconds": 3600 }),
    );
    let rotate = |token: &Value, seconds: u64| {
        let path = format!("/{}/rotate", text(&token["token_id"]));
        make(&home, &path, json!({ "overlap_seconds": seconds }))
    };
    let new = rotate(&old, 2);
    assert_eq!(new["label"], "ci");
    let lasts = |token: &Value| {
        let at = |field: &str| text(&token[field]).parse::<jiff::Timestamp>().unwrap();
        (at("expires_at") - at("created_at")).get_seconds()
    };
    assert_eq!(lasts(&new), 3600, "as long as the one before it");
    assert!(is_in(&home, text(&old["token"])) && is_in(&home, text(&new["token"])));
    eventually("the old one ends", || !is_in(&home, text(&old["token"])));
    assert!(is_in(&home, text(&new["token"])));

    // By its first characters, and without any overlap.
    let path = format!("/{}/rotate", text(&new["prefix"]));
    let newer = make(&home, &path, json!({ "overlap_seconds": 0 }));
    assert!(!is_in(&home, text(&new["token"])) && is_in(&home, text(&newer["token"])));
    // A time that was shorter anyway stays as it is.
    let short = make(&home, "", json!({ "expires_in_seconds": 1 }));
    rotate(&short, 3600);
    eventually("its own time is up", || {
        !is_in(&home, text(&short["token"]))
    });
}

#[test]
fn a_revoked_token_counts_no_more_and_has_no_successor() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let other = coder(&home);
    let made = make(&home, "", json!({}));
    let path = format!("/people/coder/tokens/{}", text(&made["token_id"]));
    assert!(is_in(&home, text(&made["token"])));
    let owner = Caller::owner(&home);
    owner.ask("DELETE", &path, &Value::Null).expect(204);
    assert!(!is_in(&home, text(&made["token"])));
    assert!(is_in(&home, &other), "others are not touched");
    owner.ask("DELETE", &path, &Value::Null).expect(204);
    let again = owner.post(&format!("{path}/rotate"), &Value::Null);
    assert_eq!(again.outcome(), (404, "no_such_token".into()));
    assert_eq!(tokens(&home).len(), 2);
    assert!(tokens(&home)[0]["revoked_at"].is_string());
    let revoked = audit(&home, "kind=token.revoked");
    assert_eq!(revoked.len(), 1, "once is on record: {revoked:#?}");
}

#[test]
fn whoever_is_deactivated_is_not_let_in_by_anything() {
    let home = Home::new();
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let token = add_here(&home, "ana", "approver");
    let (owner, stranger) = (Caller::owner(&home), Caller::stranger(&server));
    let ana = stranger.bearing(&token);
    let link = |caller: &Caller| {
        let link = caller.post("/signin/link", &Value::Null).expect(200);
        json!({ "code": text(&link["link"]).split_once('#').unwrap().1 })
    };
    let unused = link(&ana);
    let signed_in = stranger.post("/signin", &link(&ana));
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next();
    let browser = stranger.with("cookie", cookie.unwrap());
    assert_eq!(browser.get("/me").expect(200)["how"], "signed_in");
    let waiting = ana.post("/commands", &json!({ "command": "true" }));
    assert_eq!(waiting.status, 200);

    let active = |active: bool| {
        let patch = json!({ "is_active": active });
        owner.ask("PATCH", "/people/ana", &patch).expect(200);
    };
    active(false);
    for caller in [&ana, &browser] {
        assert_eq!(caller.get("/me").outcome(), (401, "no_token".into()));
    }
    assert_eq!(
        stranger.post("/signin", &unused).outcome(),
        (401, "no_token".into())
    );
    active(true);
    ana.get("/me").expect(200);
    let outcome = browser.get("/me").outcome();
    assert_eq!(
        outcome,
        (401, "no_token".into()),
        "a cookie is gone for good"
    );

    // A role that is changed counts at once, too.
    assert_eq!(ana.post("/pause", &Value::Null).status, 403);
    owner
        .ask("PATCH", "/people/ana", &json!({ "role": "operator" }))
        .expect(200);
    ana.post("/pause", &Value::Null).expect(200);
}

#[test]
fn what_was_held_is_not_begun_for_somebody_who_is_let_in_no_more() {
    let home = Home::strict();
    let _server = home.serve(&[]);
    let token = coder(&home);
    let (owner, coder) = (Caller::owner(&home), Caller::owner(&home).bearing(&token));
    owner
        .post("/pause", &json!({ "principal": "coder" }))
        .expect(200);
    let held = coder
        .post("/commands", &json!({ "command": "touch made" }))
        .expect(202);
    assert_eq!(held["state"], "held");
    owner
        .post("/resume", &json!({ "principal": "coder" }))
        .expect(200);
    let path = format!("/commands/{}", text(&held["command_id"]));
    eventually("it is asked about", || {
        owner.get(&path).json()["state"] == "waiting"
    });
    let patch = json!({ "is_active": false });
    owner.ask("PATCH", "/people/coder", &patch).expect(200);
    // It can be looked at, and not approved.
    let id = owner.get(&path).json()["approval_id"].clone();
    let shown = owner.get(&format!("/approvals/{}", text(&id))).expect(200);
    assert_eq!(
        (&shown["state"], &shown["command"]),
        (&json!("pending"), &json!("touch made"))
    );
    let approved = owner.post(&format!("{path}/approve"), &Value::Null);
    assert_eq!(approved.outcome(), (404, "no_such_person".into()));
    assert!(!home.base().join("made").exists());
    let rejected = owner
        .post(&format!("{path}/reject"), &Value::Null)
        .expect(200);
    assert_eq!(rejected["state"], "rejected");
}

#[test]
fn the_last_use_of_a_token_is_told_to_its_owner_and_its_maker() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let token = coder(&home);
    let viewer = Caller::owner(&home).bearing(&add(&home, "viewer", "viewer", json!({})));
    assert_eq!(tokens(&home)[0]["last_used_at"], Value::Null);
    let coder = Caller::owner(&home).bearing(&token);
    let own = coder.get("/people/coder").expect(200)["tokens"].clone();
    assert_eq!(own, json!(tokens(&home)));
    let used = own[0]["last_used_at"].as_str().unwrap();
    let now = jiff::Timestamp::now();
    let ago = now - used.parse::<jiff::Timestamp>().unwrap();
    assert!((0..60).contains(&ago.get_seconds()), "{used}");
    let seen = viewer.get("/people/coder").expect(200);
    assert_eq!(
        (&seen["role"], &seen["tokens"]),
        (&json!("agent"), &json!([]))
    );
}

#[test]
fn only_a_whole_token_opens() {
    let home = Home::new();
    let _server = home.serve(&[]);
    let token = coder(&home);
    let owner = Caller::owner(&home);
    for odd in [
        "",
        "Bearer",
        "Bearer ",
        "Basic Zm9vOmJhcg==",
        &token,
        &format!("bearer {token}"),
        &format!("Bearer  {token}"),
        &format!("Bearer {token}x"),
        &format!("Bearer {}", &token[..token.len() - 1]),
        &format!("Bearer {}", token.to_uppercase()),
        &format!("Bearer {}", &token[..9]),
        "Bearer ' OR 1=1 --",
        "Bearer tök",
        &format!("Bearer {}", "x".repeat(10_000)),
    ] {
        // Even over the socket: whoever shows a token is whom it stands for.
        let said = owner.with("authorization", odd).get("/me");
        assert_eq!(said.outcome(), (401, "no_token".into()), "{odd}");
    }
    assert!(is_in(&home, &token));
}
