//! The pages as files: what a browser is told about them, and what is none.

use crate::caller::{Caller, Said};
use crate::support::{Home, Server, skip};

fn serve(home: &Home, more: &[&str]) -> (Server, Caller) {
    let server = home.serve(&[&["--listen", "127.0.0.1:0"], more].concat());
    let browser = Caller::stranger(&server).with("accept", "text/html,*/*;q=0.8");
    (server, browser)
}

fn look(browser: &Caller, address: &str) -> Said {
    browser.send("GET", address, b"")
}

fn text(said: &Said) -> String {
    String::from_utf8(said.bytes.clone()).unwrap()
}

/// What stands between two texts.
fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    text.split_once(before)?.1.split(after).next()
}

#[test]
fn every_address_of_a_page_is_the_page_with_a_nonce_of_its_own() {
    let home = Home::new();
    let (_server, browser) = serve(&home, &[]);
    let mut nonces = vec![];
    for address in ["/", "/inbox", "/runs/r_1/output?x=1", "/no/such", "/agents"] {
        let page = look(&browser, address);
        assert_eq!(page.status, 200, "{address}");
        assert_eq!(page.header("cache-control"), Some("no-store"));
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
        let policy = page.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none';",
            "frame-ancestors 'none';",
            "require-trusted-types-for 'script';",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        let nonce = between(policy, "'nonce-", "'").unwrap().to_owned();
        assert!(!text(&page).contains("__NONCE__"));
        assert!(!nonces.contains(&nonce));
        nonces.push(nonce);
    }
}

#[test]
fn what_a_page_is_made_of_is_kept_by_its_name_and_packed_for_who_unpacks_it() {
    let home = Home::new();
    let (_server, browser) = serve(&home, &[]);
    let page = text(&look(&browser, "/"));
    let Some(name) = between(&page, "src=\"/assets/", "\"") else {
        assert!(page.contains("without its web pages"), "{page}");
        return skip("this program was built without npm");
    };
    let plain = look(&browser, &format!("/assets/{name}"));
    assert_eq!(
        plain.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    let keep = plain.header("cache-control").unwrap();
    assert!(keep.contains("immutable"), "{keep}");
    assert_eq!(plain.header("content-encoding"), None);
    let mut smaller = plain.bytes.len() / 2;
    for (accepted, coding) in [("deflate, gzip", "gzip"), ("gzip, br", "br")] {
        let browser = browser.with("accept-encoding", accepted);
        let packed = look(&browser, &format!("/assets/{name}"));
        assert_eq!(packed.header("content-encoding"), Some(coding));
        assert!(packed.bytes.len() < smaller, "{coding}");
        smaller = packed.bytes.len();
    }
    // What is not there is not the page: its content would be kept for ever.
    let gone = look(&browser, "/assets/index-00000000.js");
    assert_eq!(gone.outcome(), (404, "no_such_address".to_owned()));
}

#[test]
fn other_doors_stay_what_they_are() {
    let home = Home::new();
    let (_server, browser) = serve(&home, &[]);
    for address in ["/agent/terminal/me", "/agent/nothing", "/mcp"] {
        assert_eq!(look(&browser, address).status, 401, "{address}");
    }
    // Programs that mistype an address are not told about pages.
    let program = browser.with("accept", "application/json");
    let said = look(&program, "/agents/terminal/me");
    assert_eq!(said.outcome(), (404, "no_such_address".to_owned()));
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(browser.send(method, "/inbox", b"").status, 401, "{method}");
    }
    let elsewhere = browser.with("host", "evil.example");
    assert_eq!(look(&elsewhere, "/").status, 403);
}

#[test]
fn pages_under_development_come_from_their_directory_and_nowhere_else() {
    let home = Home::new();
    let dir = home.dir().join("pages");
    std::fs::create_dir_all(dir.join("assets")).unwrap();
    std::fs::write(dir.join("index.html"), "<p nonce=__NONCE__>mine").unwrap();
    std::fs::write(dir.join("assets/a.css"), "p {}").unwrap();
    std::fs::write(home.dir().join("secret.txt"), "secret").unwrap();
    let (_server, browser) = serve(&home, &["--ui-dir", &dir.display().to_string()]);
    assert!(text(&look(&browser, "/")).ends_with(">mine"));
    let style = look(&browser, "/assets/a.css");
    assert_eq!(text(&style), "p {}");
    assert_eq!(
        style.header("content-type"),
        Some("text/css; charset=utf-8")
    );
    for address in [
        "/../secret.txt",
        "/assets/../../secret.txt",
        "/%2e%2e/secret.txt",
        "//etc/passwd",
        "/..%2fsecret.txt",
    ] {
        let said = look(&browser, address);
        assert!(!text(&said).contains("secret"), "{address}");
        assert!(!text(&said).contains("root:"), "{address}");
    }
}
