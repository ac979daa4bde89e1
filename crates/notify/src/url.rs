//! Where a webhook is, as text. Whether that may be reached is found out when
//! it is: a name may lead elsewhere then.

use crate::error::Error;

/// Longer than any that a service gives out.
const MOST_BYTES: usize = 2048;

/// Refuses an address that could never be told anything.
pub(super) fn check(url: &str) -> Result<(), Error> {
    let bad = |why: &str, hint: &str| {
        let told = format!("{why}; nothing was changed");
        Err(Error::invalid("bad_webhook", told, hint))
    };
    let plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    if !plain || url.len() > MOST_BYTES || url.contains('#') {
        return bad(
            "an address has no spaces, no `#`, and at most 2048 characters, all of them ASCII",
            "write other characters as %XX, and the name of a host in its ASCII form",
        );
    }
    let Some((scheme, authority)) = parts(url) else {
        return bad("that is no address", "https://host/path");
    };
    if authority.contains(['@', '\\']) {
        return bad(
            "an address has no user in it",
            "with ntfy, give an access token as the secret",
        );
    }
    match scheme {
        "https" => Ok(()),
        "http" if is_here(authority) => Ok(()),
        _ => bad(
            "only https:// is told anything, and http:// on this machine",
            "what is told names commands, which others must not read on the way",
        ),
    }
}

/// Returns the part of an address that is no secret.
pub(super) fn place(url: &str) -> String {
    match parts(url) {
        Some((scheme, authority)) => format!("{scheme}://{authority}"),
        None => String::new(),
    }
}

fn parts(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    Some((scheme, &rest[..end])).filter(|(_, authority)| !authority.is_empty())
}

/// Whether an address names this machine by itself, and not by what a name
/// server says.
fn is_here(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let loopback = |address: std::net::IpAddr| address.is_loopback();
    host == "localhost" || host.parse().is_ok_and(loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_safe_on_the_way_is_an_address() {
        for (url, fine) in [
            ("https://hooks.example.com/T0/B1/secret", true),
            ("https://ntfy.sh/topic", true),
            ("https://[2001:db8::1]:8443/x?y=z", true),
            ("http://127.0.0.1:8080/x", true),
            ("http://[::1]/x", true),
            ("http://localhost/x", true),
            ("http://example.com/x", false),
            ("http://127.0.0.1.example.com/x", false),
            ("http://localhost.example.com/x", false),
            ("http://127.0.0.1@example.com/x", false),
            ("https://me:secret@example.com/x", false),
            ("https://example.com\\@127.0.0.1/", false),
            ("https:///x", false),
            ("ftp://example.com/x", false),
            ("file:///etc/passwd", false),
            ("https://example.com/a b", false),
            ("https://exаmple.com/", false),
            ("https://example.com/\r\nX-Y: z", false),
            ("example.com", false),
            ("", false),
        ] {
            assert_eq!(check(url).is_ok(), fine, "{url}");
        }
    }

    #[test]
    fn what_is_shown_of_an_address_ends_with_the_host() {
        let shown = place("https://hooks.example.com:8443/T0/secret?token=x");
        assert_eq!(shown, "https://hooks.example.com:8443");
        assert_eq!(place("https://host?token=x"), "https://host");
    }
}
