//! Which files of a sandbox hold secrets, by their names.
//!
//! One list serves two purposes. A command that names such a file is asked
//! about before it runs; and the walls keep the file from every command that
//! nobody has allowed, whatever the command's text says.

use std::borrow::Cow;

use crate::rules::glob::{Glob, SplitPath, WordPattern};

/// The built-in list. A later pattern overrides an earlier one, and `!` makes
/// an exception. A pattern without a slash is about names at any depth, one
/// with a slash about paths relative to the sandbox. A slash at the end means
/// directories with all that is in them; other patterns mean files. Large and
/// small letters are the same: `Server.KEY` is a key, and some file systems do
/// not tell them apart.
///
/// Only what no build needs is on it. `.npmrc` and `.yarnrc.yml` may hold a
/// token, but package managers fail without them. Certificates are public.
/// Keys below test directories are fixtures; the patterns after those
/// exceptions hold there, too.
pub const SECRET_FILES: &[&str] = &[
    // Private keys, and what may hold one.
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.ovpn",
    "*.p8",
    "*.pk8",
    "*.jceks",
    "*.keytab",
    "*.agekey",
    "secring.*",
    // Certificates.
    "!*cert*.pem",
    "!*chain*.pem",
    "!*bundle*.pem",
    "!ca.pem",
    "!*-ca.pem",
    "!ca-*.pem",
    "*key*.pem",
    "!*pub*.pem",
    // The key that every Android project has, with a password that is public.
    "!debug.keystore",
    // Fixtures.
    "!**/test/**",
    "!**/tests/**",
    "!**/testdata/**",
    "!**/fixtures/**",
    "!**/__tests__/**",
    "!**/__fixtures__/**",
    "!**/spec/**",
    // Keys of SSH.
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*_rsa",
    "*_dsa",
    "*_ecdsa",
    "*_ed25519",
    "ssh_host_*_key",
    "!*.pub",
    // Variables of a program.
    ".env",
    ".env.*",
    ".env*",
    "*.env",
    ".envrc",
    "!example.env",
    "!sample.env",
    "!template.env",
    "!*.example.env",
    "!*.sample.env",
    "!*.template.env",
    // Passwords and tokens.
    ".netrc",
    "_netrc",
    ".pgpass",
    "pgpass.conf",
    ".my.cnf",
    ".mylogin.cnf",
    ".git-credentials",
    ".htpasswd",
    "htpasswd",
    ".s3cfg",
    ".boto",
    ".pypirc",
    ".vault-token",
    ".vault_pass*",
    ".vault-pass*",
    ".dev.vars",
    ".dockercfg",
    ".passwd",
    ".terraformrc",
    "kubeconfig",
    "*.kubeconfig",
    "rclone.conf",
    "credentials",
    "credentials.json",
    "*credentials.csv",
    "credentials.yml",
    "credentials.yaml",
    "credentials.toml",
    "credentials.ini",
    "credentials.tfrc.json",
    "application_default_credentials.json",
    "client_secret*.json",
    "service-account*.json",
    "service_account*.json",
    "serviceaccount*.json",
    "*firebase-adminsdk*.json",
    "rootkey.csv",
    "*accesskeys.csv",
    "key.properties",
    "keystore.properties",
    "secret.yml",
    "secret.yaml",
    "secret.json",
    "secret.toml",
    "secrets.yml",
    "secrets.yaml",
    "secrets.json",
    "secrets.toml",
    // A chart's templates are no secrets yet.
    "!**/templates/secrets.yml",
    "!**/templates/secrets.yaml",
    "!**/templates/secret.yml",
    "!**/templates/secret.yaml",
    ".secret",
    ".secrets",
    "*.tfstate",
    "*.tfstate.*",
    "*.tfvars",
    "**/.docker/config.json",
    "**/.cargo/credentials*",
    "**/.kube/config",
    "**/.config/git/credentials",
    // What was typed, with passwords in it.
    ".bash_history",
    ".zsh_history",
    ".sh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".ssh/",
    ".gnupg/",
    ".aws/",
    ".azure/",
    ".password-store/",
    ".secrets/",
    "**/.config/gh/",
    "**/.config/gcloud/",
    "**/.config/op/",
    "**/.config/glab-cli/",
    "**/.config/doctl/",
    "**/.config/sops/",
    "**/.config/age/",
    // Templates of any of them.
    "!*.example",
    "!*.sample",
    "!*.template",
    "!*.dist",
    "!*.defaults",
    "!*.schema",
];

/// A compiled list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretFiles {
    patterns: Vec<SecretPattern>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SecretPattern {
    what: SecretMatcher,
    /// It makes an exception.
    except: bool,
    /// It is about directories.
    directory: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SecretMatcher {
    /// A name at any depth. Most are, and comparing one is cheap.
    Name(WordPattern),
    Path(Glob),
}

impl SecretFiles {
    /// Compiles the built-in list followed by `more`, or says which pattern is
    /// wrong.
    pub fn new<'a>(more: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let all = SECRET_FILES.iter().copied().chain(more);
        let patterns = all.map(SecretPattern::new).collect::<Result<_, _>>()?;
        Ok(Self { patterns })
    }

    /// Returns whether a path, relative to the sandbox, is on the list: a
    /// directory as a whole, or a file.
    pub fn has(&self, path: &str, is_directory: bool) -> bool {
        let path = &*lower(path);
        let name = path.rsplit('/').next().unwrap_or(path);
        let about = |pattern: &&SecretPattern| pattern.is_about(name, path, is_directory);
        // Nearly all paths are on no list, and need not be compared with the
        // exceptions.
        let listed = |pattern: &&SecretPattern| !pattern.except && about(pattern);
        if !self.patterns.iter().any(|pattern| listed(&pattern)) {
            return false;
        }
        let last = self.patterns.iter().rev().find(about);
        last.is_some_and(|pattern| !pattern.except)
    }
}

impl SecretPattern {
    fn new(written: &str) -> Result<Self, String> {
        let (except, rest) = match written.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, written),
        };
        let (directory, rest) = match rest.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        if rest.trim().is_empty() || rest.starts_with(['/', '~']) {
            return Err(format!(
                "`{written}` is no pattern for files of a sandbox: write a name such as `.env`, \
                 or a path relative to the sandbox such as `config/*.key`"
            ));
        }
        let rest = &*lower(rest);
        let what = match rest {
            _ if !rest.contains(['/', '?', '[', '{']) && rest != "**" => {
                SecretMatcher::Name(WordPattern::new(rest))
            }
            _ if rest.contains('/') || rest == "**" => SecretMatcher::Path(Glob::new(rest)?),
            _ => SecretMatcher::Path(Glob::new(&format!("**/{rest}"))?),
        };
        Ok(Self {
            what,
            except,
            directory,
        })
    }

    fn is_about(&self, name: &str, path: &str, is_directory: bool) -> bool {
        // An exception for a file never opens a directory, nor the other way
        // round; `!**` is about everything.
        let kind = self.directory == is_directory || self.is_everything();
        kind && match &self.what {
            SecretMatcher::Name(word) => word.matches(name),
            SecretMatcher::Path(glob) => glob.matches(&SplitPath::new(path)),
        }
    }

    fn is_everything(&self) -> bool {
        matches!(&self.what, SecretMatcher::Path(glob) if glob.is_everything())
    }
}

fn lower(text: &str) -> Cow<'_, str> {
    match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => text.to_ascii_lowercase().into(),
        false => text.into(),
    }
}

/// Returns the names on the built-in list, without exceptions, as a command
/// could write them.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let listed = SECRET_FILES.iter().filter(|name| !name.starts_with('!'));
    listed.map(|name| name.trim_start_matches("**/").trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(more: &[&str]) -> SecretFiles {
        SecretFiles::new(more.iter().copied()).unwrap()
    }

    #[test]
    fn what_holds_secrets_is_told_by_its_name() {
        let list = list(&[]);
        for path in [
            ".env",
            ".env.local",
            "app/.env.production",
            "prod.env",
            "tests/.env",
            "server.pem",
            "certs/tls.key",
            "config/master.key",
            "cert-key.pem",
            "deploy/id_ed25519",
            "x/id_rsa_old",
            "credentials.json",
            ".aws/credentials",
            "infra/prod.tfvars",
            "infra/terraform.tfstate.backup",
            "config/secrets.yml",
            ".netrc",
            ".ENV",
            "Certs/Server.PEM",
            "ID_RSA",
            "deploy_ed25519",
            "etc/ssh_host_rsa_key",
            "firebase/serviceAccountKey.json",
            "shop-firebase-adminsdk-x1.json",
            "client_secret_42.apps.googleusercontent.com.json",
            "new_user_credentials.csv",
            "anna_accessKeys.csv",
            ".kube/config",
            "ci.kubeconfig",
            "k8s/secret.yaml",
            ".bash_history",
        ] {
            assert!(list.has(path, false), "{path}");
        }
        for path in [
            ".env.example",
            ".env.sample",
            "app/.env.template",
            "example.env",
            "tests/fixtures/server.pem",
            "crates/tls/testdata/tls.key",
            "certifi/cacert.pem",
            "fullchain.pem",
            "id_rsa.pub",
            "certs/server.crt",
            ".npmrc",
            "chart/templates/secrets.yaml",
            "chart/templates/secret.yaml",
            ".ENV.Example",
            "ssh_host_rsa_key.pub",
            "src/secret.rs",
            "credentials.go",
            "src/credentials.rs",
            "android/app/debug.keystore",
            "environment.ts",
        ] {
            assert!(!list.has(path, false), "{path}");
        }
        assert!(list.has(".ssh", true) && list.has("ops/.aws", true));
        assert!(list.has("me/.config/gh", true));
        // A virtual environment of Python's, and a module.
        assert!(!list.has(".env", true) && !list.has("src/credentials", true));
    }

    #[test]
    fn a_sandbox_adds_to_the_list_and_takes_from_it() {
        let own = list(&["config/prod.yml", "!.env.test", "private/"]);
        assert!(own.has("config/prod.yml", false));
        assert!(!own.has("app/config/prod.yml", false));
        assert!(own.has(".env", false) && !own.has("web/.env.test", false));
        assert!(own.has("a/private", true) && !own.has("a/private", false));
        let none = list(&["!**"]);
        assert!(!none.has(".env", false) && !none.has(".ssh", true));
        let few = list(&["!**", ".env"]);
        assert!(few.has("x/.env", false) && !few.has("x.pem", false));
        let cased = list(&["Config/Prod.yml", "!**/KEYS/*"]);
        assert!(cased.has("config/prod.YML", false) && !cased.has("keys/a.pem", false));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for wrong in ["", "!", "/", "/etc/shadow", "~/.ssh", "a/../b", "x{"] {
            assert!(SecretFiles::new([wrong]).is_err(), "{wrong}");
        }
    }
}
