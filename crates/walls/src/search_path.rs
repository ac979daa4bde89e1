//! The PATH of commands.

/// The PATH where neither the login shell nor the server has one.
pub(crate) const FALLBACK_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Returns the PATH of commands: the login shell's directories, followed by
/// those that only the server's environment has.
pub(crate) fn search_path(login: Option<&str>, server: &[(String, String)]) -> String {
    let own = server.iter().find(|(name, _)| name == "PATH");
    let own = own.map(|(_, path)| path.as_str());
    match (login, own) {
        (Some(login), own) => join_paths(&[login, own.unwrap_or_default()]),
        // A person set it so on purpose, relative directories included.
        (None, Some(own)) => own.to_owned(),
        (None, None) => FALLBACK_PATH.to_owned(),
    }
}

/// Joins lists of directories, each directory once. Leaves out relative ones:
/// they depend on where a command runs, and an agent can write there.
pub(crate) fn join_paths(lists: &[&str]) -> String {
    let mut kept: Vec<&str> = vec![];
    for dir in lists.iter().flat_map(|list| list.split(':')) {
        if dir.starts_with('/') && !kept.contains(&dir) {
            kept.push(dir);
        }
    }
    kept.join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_shell_comes_first_in_the_path() {
        let server = [("PATH".into(), "/bin:/own:.:/usr/bin".into())];
        for (login, server, path) in [
            (
                Some("/my:/usr/bin:/bin"),
                &server[..],
                "/my:/usr/bin:/bin:/own",
            ),
            (Some("/my"), &[], "/my"),
            (None, &server, "/bin:/own:.:/usr/bin"),
            (None, &[], FALLBACK_PATH),
        ] {
            assert_eq!(search_path(login, server), path);
        }
    }
}
