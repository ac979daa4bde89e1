//! Signing in with a browser: a link that counts once, or a token; then a cookie.

use serde_json::{Value, json};

use crate::caller::{Caller, Said, add, audit};
use crate::support::{Home, Server};

fn serve(home: &Home) -> (Server, Caller) {
    let server = home.serve(&["--listen", "127.0.0.1:0"]);
    let stranger = Caller::stranger(&server);
    (server, stranger)
}

fn sign_in(browser: &Caller, code: &str) -> Said {
    browser.post("/signin", &json!({ "code": code }))
}

fn sign_in_with(browser: &Caller, token: &str) -> Said {
    browser.post("/signin", &json!({ "token": token }))
}

/// A browser that has signed in by a link.
fn signed_in(browser: &Caller, code: &str) -> Caller {
    let_in(browser, &sign_in(browser, code))
}

fn let_in(browser: &Caller, said: &Said) -> Caller {
    assert_eq!(said.status, 200, "{said:?}");
    let cookie = said.header("set-cookie").unwrap().split(';').next();
    browser.with("cookie", cookie.unwrap())
}

fn refused(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[test]
fn the_link_of_a_server_signs_its_owner_in_once() {
    let home = Home::new();
    let (server, stranger) = serve(&home);
    let code = server.code();
    let said = sign_in(&stranger, &code);
    let me = said.expect(200);
    assert_eq!(
        (&me["principal_id"], &me["role"], &me["how"]),
        (
            &json!(home.me()),
            &json!("administrator"),
            &json!("signed_in")
        )
    );
    let set = said.header("set-cookie").unwrap();
    let (cookie, flags) = set.split_once("; ").unwrap();
    assert_eq!(flags, "HttpOnly; SameSite=Strict; Path=/; Max-Age=43200");
    let (name, value) = cookie.split_once('=').unwrap();
    assert_eq!(
        (name, value.len()),
        ("weighlock_session", "wlc_".len() + 64)
    );

    for browser in [&stranger, &stranger.with("cookie", cookie)] {
        assert_eq!(sign_in(browser, &code).outcome(), refused(403, "bad_link"));
    }
    let browser = stranger.with("cookie", cookie);
    assert_eq!(browser.get("/me").expect(200), me);
    let signed = audit(&home, "kind=person.signed_in");
    assert_eq!((signed.len(), &signed[0]["actor"]), (1, &json!(home.me())));

    // Whoever is signed in stays so; a link that was not used is gone.
    assert_eq!(server.terminate(), Some(0));
    let (server, stranger) = serve(&home);
    assert_ne!(server.code(), code);
    let browser = stranger.with("cookie", cookie);
    assert_eq!(browser.get("/me").expect(200)["how"], "signed_in");
    let kept = std::fs::read_dir(home.state()).unwrap().flatten();
    for file in kept.map(|entry| std::fs::read(entry.path()).unwrap_or_default()) {
        let has = |secret: &str| file.windows(64).any(|part| part == &secret.as_bytes()[4..]);
        assert!(!has(value) && !has(&code), "only a hash is kept");
    }
}

#[test]
fn of_all_who_use_a_link_at_once_one_is_let_in() {
    let home = Home::new();
    let (server, stranger) = serve(&home);
    let code = server.code();
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| sign_in(&stranger, &code)))
            .collect();
        all.into_iter()
            .map(|one| one.join().unwrap().status)
            .collect()
    });
    let let_in = answers.iter().filter(|&&status| status == 200).count();
    assert_eq!((let_in, answers.len()), (1, 8), "{answers:?}");
}

#[test]
fn what_is_no_link_signs_nobody_in() {
    let home = Home::new();
    let (server, stranger) = serve(&home);
    let code = server.code();
    for wrong in [
        "",
        "wls_",
        &code[4..],
        &code[..code.len() - 1],
        &code.to_uppercase(),
    ] {
        assert_eq!(
            sign_in(&stranger, wrong).outcome(),
            refused(403, "bad_link"),
            "{wrong}"
        );
    }
    let odd = stranger.post("/signin", &json!({ "code": code, "more": 1 }));
    assert_eq!(odd.outcome(), refused(422, "invalid_body"));
    // Looking at the page, as a scanner of mails does, uses nothing up.
    for method in ["GET", "HEAD"] {
        let said = stranger.ask(method, "/signin", &Value::Null);
        assert_eq!(said.status, 401, "{method}");
    }
    let browser = stranger.with("accept", "text/html");
    let page = browser.send("GET", "/signin", b"");
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy",
        "x-content-type-options",
        "referrer-policy",
    ] {
        assert!(page.header(header).is_some(), "{header}: {}", page.head);
    }
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(sign_in(&stranger, &code).status, 200);
}

#[test]
fn a_cookie_alone_changes_nothing() {
    let home = Home::new();
    let (server, stranger) = serve(&home);
    let browser = signed_in(&stranger, &server.code());
    let ours = browser.with("x-weighlock", "1");
    let pause = json!({});
    assert_eq!(
        browser.post("/pause", &pause).outcome(),
        refused(403, "forged")
    );
    for method in ["PUT", "PATCH", "DELETE"] {
        let said = browser.ask(method, "/blacklist", &json!({ "commandBlacklist": ["x"] }));
        assert_eq!(said.outcome(), refused(403, "forged"), "{method}");
    }
    let address = server.address();
    for (header, value) in [
        ("origin", "https://evil.test"),
        ("origin", "http://evil.test"),
        ("origin", "null"),
        ("origin", &format!("http://{address}.evil.test")),
        ("origin", &format!("http://{}", address.replace(':', "0:"))),
        ("host", "evil.test"),
        ("host", &format!("{address}.evil.test")),
        ("host", ""),
    ] {
        for caller in [ours.with(header, value), stranger.with(header, value)] {
            let said = caller.post("/pause", &pause);
            assert_eq!(
                said.outcome(),
                refused(403, "foreign_origin"),
                "{header}: {value}"
            );
            let said = caller.get("/me");
            assert_eq!(
                said.outcome(),
                refused(403, "foreign_origin"),
                "{header}: {value}"
            );
            let said = sign_in(&caller, "x");
            assert_eq!(
                said.outcome(),
                refused(403, "foreign_origin"),
                "{header}: {value}"
            );
        }
    }
    assert_eq!(
        home.api("GET", "/pauses", &Value::Null).1["pauses"],
        json!([])
    );
    let own = ours.with("origin", &format!("http://{address}"));
    assert_eq!(own.post("/pause", &pause).status, 200);
    // A token beside a cookie is what counts, and is nobody's by accident.
    let token = home.token(&home.me());
    let both = browser.bearing(&token);
    assert_eq!(both.post("/resume", &pause).status, 200);
    let wrong = ours.bearing("wl_wrong");
    assert_eq!(wrong.get("/me").outcome(), refused(401, "no_token"));
}

#[test]
fn whoever_signs_out_is_out() {
    let home = Home::new();
    let (server, stranger) = serve(&home);
    let browser = signed_in(&stranger, &server.code());
    let ours = browser.with("x-weighlock", "1");
    let link = ours.post("/signin/link", &Value::Null).expect(200)["link"].clone();
    let code = link.as_str().unwrap().strip_prefix("/signin#").unwrap();
    let other = signed_in(&stranger, code);
    assert_eq!(
        browser.post("/signout", &Value::Null).outcome(),
        refused(403, "forged")
    );
    let said = ours.post("/signout", &Value::Null);
    assert_eq!(said.status, 204);
    assert_eq!(
        said.header("set-cookie"),
        Some("weighlock_session=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0")
    );
    assert_eq!(ours.get("/me").outcome(), refused(401, "no_token"));
    assert_eq!(
        other.get("/me").expect(200)["how"],
        "signed_in",
        "elsewhere it counts"
    );
    for cookie in [
        "weighlock_session=",
        "weighlock_session",
        "weighlock_session=x",
        "a=b",
    ] {
        let said = stranger.with("cookie", cookie).get("/me");
        assert_eq!(said.outcome(), refused(401, "no_token"), "{cookie}");
    }
}

#[test]
fn nothing_is_decided_by_looking() {
    let home = Home::strict();
    let (server, stranger) = serve(&home);
    let browser = signed_in(&stranger, &server.code()).with("x-weighlock", "1");
    let run = browser
        .post("/commands", &json!({ "command": "touch made" }))
        .expect(202);
    let id = |field: &str| run[field].as_str().unwrap().to_owned();
    let (run, approval) = (id("command_id"), id("approval_id"));
    let shown = browser.get(&format!("/approvals/{approval}")).expect(200);
    let fingerprint = shown["fingerprint"].as_str().unwrap();
    let query = format!("?kind=approve_once&fingerprint={fingerprint}");
    for path in [
        format!("/approvals/{approval}/decision{query}"),
        format!("/approvals/{approval}{query}"),
        format!("/commands/{run}/approve{query}"),
        format!("/commands/{run}/reject"),
    ] {
        for method in ["GET", "HEAD"] {
            let said = browser.ask(method, &path, &Value::Null);
            assert!(
                matches!(said.status, 405 | 200),
                "{method} {path}: {said:?}"
            );
        }
        // Nor by a form, which knows no JSON.
        let form = browser.send(
            "POST",
            &format!("/agent/terminal{path}"),
            b"kind=approve_once",
        );
        assert!((400..500).contains(&form.status), "{path}: {form:?}");
    }
    assert_eq!(
        browser.get(&format!("/approvals/{approval}")).json()["state"],
        "pending"
    );
    assert!(!home.base().join("made").exists());
}

#[test]
fn behind_a_proxy_the_cookie_wants_tls() {
    let home = Home::new();
    let config = home.config("hosts = [\"agents.example.com\"]\n");
    let server = home.serve(&["--listen", "127.0.0.1:0", "--config", &config]);
    let proxied = Caller::stranger(&server).with("host", "agents.example.com");
    let own = proxied.with("origin", "https://agents.example.com");
    let said = sign_in(&own, &server.code());
    let set = said.header("set-cookie").unwrap();
    assert!(set.ends_with("; Max-Age=43200; Secure"), "{set}");
    for host in [
        "example.com",
        "x.agents.example.com",
        "agents.example.com.evil.test",
    ] {
        let said = proxied.with("host", host).get("/me");
        assert_eq!(said.outcome(), refused(403, "foreign_origin"), "{host}");
    }
}

#[test]
fn a_person_signs_in_with_a_token_for_as_long_as_it_counts() {
    let home = Home::new();
    let (_server, stranger) = serve(&home);
    let token = add(&home, "maria", "approver", json!({}));
    let said = sign_in_with(&stranger, &format!(" {token}\n"));
    let me = said.expect(200);
    assert_eq!(
        (&me["principal_id"], &me["role"], &me["how"]),
        (&json!("maria"), &json!("approver"), &json!("signed_in"))
    );
    let browser = let_in(&stranger, &said);
    let other = let_in(&stranger, &sign_in_with(&stranger, &home.token("maria")));
    assert_eq!(browser.get("/me").expect(200), me);
    let signed = audit(&home, "kind=person.signed_in");
    assert_eq!(signed[0]["actor"], "maria");
    assert_eq!(signed[0]["detail"]["prefix"], token[..9]);

    // Nobody makes a cookie outlast its token by leaving the token's name out.
    let set = said.header("set-cookie").unwrap().split(';').next();
    let (alone, id) = set.unwrap().split_once('.').unwrap();
    assert_eq!(
        stranger.with("cookie", alone).get("/me").outcome(),
        refused(401, "no_token")
    );
    let path = format!("/people/maria/tokens/{id}");
    let revoked = Caller::owner(&home).ask("DELETE", &path, &Value::Null);
    assert_eq!(revoked.status, 204);
    assert_eq!(browser.get("/me").outcome(), refused(401, "no_token"));
    assert_eq!(
        sign_in_with(&stranger, &token).outcome(),
        refused(403, "bad_token")
    );
    assert_eq!(
        other.get("/me").expect(200)["principal_id"],
        "maria",
        "another token's goes on"
    );
}

#[test]
fn an_agents_token_signs_nobody_in() {
    let home = Home::new();
    let (server, stranger) = serve(&home);
    let token = add(&home, "coder", "agent", json!({}));
    let said = sign_in_with(&stranger, &token);
    assert_eq!(said.outcome(), refused(403, "never_agents"));
    assert_eq!(said.header("set-cookie"), None);
    assert_eq!(audit(&home, "kind=person.signed_in"), Vec::<Value>::new());
    let code = server.code();
    for wrong in ["", "wl_", &code, &token[..token.len() - 1]] {
        assert_eq!(
            sign_in_with(&stranger, wrong).outcome(),
            refused(403, "bad_token"),
            "{wrong}"
        );
    }
    let both = stranger.post("/signin", &json!({ "code": code, "token": token }));
    assert_eq!(both.outcome(), refused(422, "invalid_body"));
    assert_eq!(sign_in(&stranger, &code).status, 200, "it was not used up");
}
