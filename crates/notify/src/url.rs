//! Checks the URL of a webhook as text. Which address its name resolves to is
//! checked at each delivery, since that can change.

use crate::error::Error;

/// The longest URL: longer than those that services issue.
const MAX_BYTES: usize = 2048;

/// Refuses a URL that no message could be delivered to.
pub(crate) fn check_url(url: &str) -> Result<(), Error> {
    let bad = |why: &str, hint| Err(Error::invalid("bad_webhook", why, hint));
    let plain = url.bytes().all(|byte| byte.is_ascii_graphic());
    if !plain || url.len() > MAX_BYTES || url.contains('#') {
        return bad(
            "a URL has no spaces, no `#`, and at most 2048 characters, all of them ASCII",
            "write other characters as %XX, and the host name in its ASCII form",
        );
    }
    let Some((scheme, authority)) = parts(url) else {
        return bad("that is not a URL", "write it as https://host/path");
    };
    if authority.contains(['@', '\\']) {
        return bad(
            "the URL must not contain a user name",
            "with ntfy, give an access token as the secret",
        );
    }
    match scheme {
        "https" => Ok(()),
        "http" if is_this_machine(authority) => Ok(()),
        _ => bad(
            "only https:// is accepted, and http:// for this machine",
            "messages contain commands, which must be encrypted on the network",
        ),
    }
}

/// Returns scheme and host of a URL; the rest may be a secret.
pub(crate) fn origin(url: &str) -> String {
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

/// Returns whether a host is this machine by definition, not because a name
/// server says so.
fn is_this_machine(authority: &str) -> bool {
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
    fn only_encrypted_or_local_urls_are_accepted() {
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
            assert_eq!(check_url(url).is_ok(), fine, "{url}");
        }
    }

    #[test]
    fn the_shown_part_of_a_url_ends_with_the_host() {
        let shown = origin("https://hooks.example.com:8443/T0/secret?token=x");
        assert_eq!(shown, "https://hooks.example.com:8443");
        assert_eq!(origin("https://host?token=x"), "https://host");
    }
}
