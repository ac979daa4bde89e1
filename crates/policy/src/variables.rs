//! Which variables change what programs do, and which hold secrets.

/// Variables that change how something looks and nothing else.
const QUIET: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLUMNS",
    "LINES",
    "CI",
    "DEBIAN_FRONTEND",
    "RUST_BACKTRACE",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "NODE_ENV",
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
    "CARGO_TERM_COLOR",
    "GREP_COLOR",
    "GREP_COLORS",
    "LS_COLORS",
    "TIME_STYLE",
    "BLOCK_SIZE",
    "BLOCKSIZE",
    "TIMEFORMAT",
    "MANWIDTH",
    "SYSTEMD_COLORS",
    "HOMEBREW_NO_AUTO_UPDATE",
    "NPM_CONFIG_COLOR",
    "CARGO_INCREMENTAL",
    "RUST_LOG",
    "LOG_LEVEL",
    "DEBUG",
    "VERBOSE",
];

/// Variables that make programs run code, read other files, or write some.
const LOUD: &[&str] = &[
    "PATH",
    "IFS",
    "ENV",
    "HOME",
    "CDPATH",
    "GLOBIGNORE",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "SHELL",
    "INPUTRC",
    "TMPDIR",
    "TERMINFO",
    "TERMCAP",
    "TERMINFO_DIRS",
    "VISUAL",
    "EDITOR",
    "BROWSER",
    "FCEDIT",
    "MAILCHECK",
    "MAILPATH",
    "HISTFILE",
    "FPATH",
    "ZDOTDIR",
    "CC",
    "CXX",
    "LD",
    "MAKEFLAGS",
    "MFLAGS",
    "GOFLAGS",
    "RUSTFLAGS",
    "RUSTC",
    "RUSTC_WRAPPER",
    "CLASSPATH",
    "MANPATH",
    "POSIXLY_CORRECT",
    "OPTIND",
    // Whatever is put into these is evaluated as an expression.
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "HISTCMD",
    "LINENO",
    "EXECIGNORE",
    "FUNCNEST",
    "LOCPATH",
    "NLSPATH",
    "HOSTALIASES",
    "RESOLV_HOST_CONF",
    "TAR_OPTIONS",
    "GREP_OPTIONS",
    "GZIP",
    "BZIP",
    "BZIP2",
    "XZ_OPT",
    "ZIPOPT",
    "ZIP",
    "UNZIP",
    "FIND_OPTIONS",
    "LSOF",
    "OPENSSL_CONF",
    "CURL_HOME",
    "WGETRC",
    "SYSTEM_WGETRC",
    "AWKPATH",
    "AWKLIBPATH",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "SUDO_ASKPASS",
    "SSH_ASKPASS",
    "MANOPT",
    "MANROFFOPT",
    "MANLESS",
    "PROMPT",
];

/// The same, by how a name begins.
const LOUD_STARTS: &[&str] = &[
    "LD_",
    "DYLD_",
    "GIT_",
    "BASH_",
    "PYTHON",
    "PERL",
    "RUBY",
    "NODE_",
    "NPM_",
    "npm_",
    "JAVA",
    "_JAVA",
    "JDK_",
    "LUA_",
    "GCONV_",
    "MALLOC_",
    "LESS",
    "XDG_",
    "GPG",
    "GNUPG",
    "CARGO_",
    "KUBECONFIG",
    "DOCKER_",
    "AWS_",
    "SYSTEMD_",
    "PG",
    "MYSQL_",
    "RIPGREP_",
    "JQ_",
    "YQ_",
    "BAT_",
    "FZF_",
    "GUILE_",
    "PIP_",
    "UV_",
    "GEM_",
    "BUNDLE_",
    "MAVEN_",
    "GRADLE_",
    "GLIBC_",
    "ASAN_",
    "DOTNET_",
    "COMPlus_",
    "PSModule",
    "DIRENV_",
    "NIX_",
    "QT_",
    "GTK_",
    "GIO_",
    "RUSTUP_",
];

/// The same, by how a name ends.
const LOUD_ENDS: &[&str] = &[
    "PAGER",
    "EDITOR",
    "BROWSER",
    "_CONFIG",
    "_CONFIG_PATH",
    "_OPTIONS",
    "_OPTS",
    "_FLAGS",
    "_COMMAND",
    "_CMD",
    "_PROGRAM",
    "_SHELL",
    "_PRELOAD",
    "_RC",
    "RCFILE",
    "_EXEC",
    "_WRAPPER",
    "_ASKPASS",
    "_HOOK",
    "_HOOKS",
];

/// Words in a name that say what it holds.
const SECRET_WORDS: &[&str] = &[
    "SECRET",
    "SECRETS",
    "TOKEN",
    "TOKENS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASS",
    "PWD",
    "PASSPHRASE",
    "APIKEY",
    "KEY",
    "KEYS",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "PAT",
    "COOKIE",
    "DSN",
    "AUTH",
    "PRIVATE",
    "JWT",
    "BEARER",
    "WEBHOOK",
    "PIN",
    "SALT",
];

/// Returns whether handing the variable to programs changes nothing but how
/// things look.
pub(crate) fn is_quiet(name: &str, value: Option<&str>) -> bool {
    QUIET.contains(&name)
        || name.starts_with("LC_")
        // No pager at all, said in the usual way.
        || (name.ends_with("PAGER") && matches!(value, Some("cat" | "")))
        || (name == "PATH" && value.is_some_and(|path| path.split(':').all(is_bin)))
}

/// Returns whether programs of the system are in a directory. One that is
/// somewhere else only has the name of one that is known.
pub(crate) fn is_bin(dir: &str) -> bool {
    matches!(
        dir,
        "/bin"
            | "/usr/bin"
            | "/usr/local/bin"
            | "/sbin"
            | "/usr/sbin"
            | "/usr/local/sbin"
            | "/opt/homebrew/bin"
            | "/run/current-system/sw/bin"
    )
}

/// Returns whether setting the variable may change what later programs do,
/// even when it is not exported here: it may be exported already.
pub fn is_loud(name: &str) -> bool {
    LOUD.contains(&name)
        || LOUD_STARTS.iter().any(|start| name.starts_with(start))
        || LOUD_ENDS.iter().any(|end| name.ends_with(end))
}

/// Returns whether the name says that the value is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if matches!(
        upper.as_str(),
        "PWD" | "OLDPWD" | "SSH_AUTH_SOCK" | "XAUTHORITY"
    ) {
        return false;
    }
    upper.split('_').any(|word| SECRET_WORDS.contains(&word))
        || [
            "DATABASE_URL",
            "REDIS_URL",
            "MONGO_URL",
            "MONGODB_URI",
            "CONNECTION_STRING",
        ]
        .iter()
        .any(|end| upper.ends_with(end))
}
