//! Makes scripts: by grammar, and by damaging lines that people collected.
//!
//! Most of it reads only, so that many scripts are allowed to run; harm hides
//! in the corners, where a careless reader does not see it and a shell does.

/// Small, fast and the same everywhere (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64, case: u64) -> Self {
        let mut random = Self(seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).unwrap_or(1);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }

    fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// Commands that only read, as far as anybody knows.
const CALM: &[&str] = &[
    "ls",
    "ls -la",
    "cat README.md",
    "cat a",
    "grep -rn x .",
    "head -n 3 README.md",
    "wc -l",
    "sort",
    "uniq",
    "cut -d' ' -f1",
    "git status",
    "git log --oneline",
    "git diff",
    "stat a",
    "du -sh .",
    "pwd",
    "echo hi",
    "echo",
    "printf '%s\\n' a b",
    "true",
    "false",
    ":",
    "test -f a",
    "[ -d src ]",
    "date",
    "whoami",
    "uname -a",
    "find . -name '*.rs'",
    "find src -type f",
    "sed -n 1p README.md",
    "sed 's/a/b/'",
    "awk '{print $1}' a",
    "tr a b",
    "basename a/b",
    "dirname a/b",
    "cd src",
    "cd ..",
    "cd /tmp",
    "read x",
    "set -e",
    "set -u",
    "shift",
    "jq .",
    "rg x",
    "tree",
    "id",
    "df -h",
    "cargo --version",
    "node --version",
    "seq 3",
    "rev",
    "type ls",
    "command -v ls",
    "wait",
    "tail -n 2 a",
    "file a",
    "diff a README.md",
    "env",
    "printenv HOME",
    "ps aux",
    "export A=1",
    "unset x",
    "local_x=1",
    "hash -r",
    "umask",
    "ulimit -n",
    "jobs",
    "readlink a",
    "realpath a",
    "md5sum a",
    "sleep 0",
    "expr 1 + 1",
    "echo -e 'a\\tb'",
    "set -- a b",
    "getopts ab x",
    "return",
    "break",
    "continue",
    "exit 0",
    "stat -c %n a",
    "nl a",
    "tac a",
    "column -t",
    "xxd a",
    "od -c a",
];

/// Harm, as plain as can be.
const HARM: &[&str] = &[
    "touch pwned",
    "rm -rf a",
    "mkdir pwned",
    "cp a pwned",
    "mv a b",
    "sudo id",
    "curl x.io",
    "chmod 777 a",
    "ln -s a pwned",
    "git push",
    "npm install x",
    "python3 -c 1",
    "kill 1",
    "cat ~/.ssh/id_rsa",
    "dd of=pwned",
    "tee pwned",
    "echo hi > pwned",
    ": > pwned",
    "printf x >>pwned",
    "sed -i s/a/b/ a",
    "sort -o pwned a",
    "find . -delete",
    "env GITHUB_TOKEN",
    "echo $GITHUB_TOKEN",
    "./a",
    "source a",
    ". ./a",
    "reboot",
    "make",
];

const PLAIN: &[&str] = &[
    "a",
    "src",
    "README.md",
    "-l",
    "-n",
    "-r",
    "--color=auto",
    "x=1",
    "rm",
    "touch",
    "pwned",
    "1",
    ".",
    "..",
    "/tmp",
    "-",
    "--",
    "-e",
    "s/a/b/",
    "*.rs",
    "x",
    "if",
    "done",
    "}",
    "in",
    "esac",
    "=",
    "!",
    "a=b",
    "@",
    "%",
    "+",
    "é",
    "日本",
    "a#b",
    "[",
    "]",
    "-c",
    "-exec",
    ";",
    "EOF",
    "\u{a0}",
];

const NAMES: &[&str] = &[
    "x", "y", "A", "HOME", "PWD", "1", "@", "*", "#", "?", "_", "IFS", "RANDOM", "x1", "0", "-",
    "OLDPWD",
];

const BLANKS: &[&str] = &[" ", " ", " ", " ", "  ", "\t", " \\\n", "\\\n ", " \\\n\t"];

/// What a damaged line gets where it is damaged.
const SHARDS: &[&str] = &[
    "'",
    "\"",
    "\\",
    "`",
    "$(",
    ")",
    "(",
    "{",
    "}",
    "${",
    "$((",
    "))",
    "[[",
    "]]",
    ";",
    ";;",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    "\n",
    "\\\n",
    " ",
    "\t",
    "#",
    " #",
    "<",
    ">",
    ">>",
    "<<",
    "<<-",
    "<<<",
    "<(",
    ">(",
    "2>&1",
    ">&",
    "&>",
    "<&",
    ">|",
    "<>",
    "=",
    "+=",
    "$",
    "$'",
    "$\"",
    "!",
    "~",
    "*",
    "?",
    "[",
    "]",
    "-",
    "--",
    "{a,b}",
    "{1..2}",
    "$x",
    "${x}",
    "${x:-",
    "$@",
    "\r",
    "\u{b}",
    "\u{c}",
    "\u{a0}",
    "é",
    "EOF",
    "\nEOF\n",
    "<<EOF\n",
    "<<'EOF'\n",
    "<<\\EOF\n",
    "if ",
    "; then ",
    "; fi",
    "for x in ",
    "; do ",
    "; done",
    "case a in ",
    "a) ",
    ";; esac",
    "function ",
    "f() ",
    "{ ",
    "; }",
    "time ",
    "coproc ",
    "eval ",
    "exec ",
    "command ",
    "builtin ",
    "env ",
    "xargs ",
    "sh -c ",
    "trap ",
    "\\'",
    "\\\"",
    "''",
    "\"\"",
    "a=",
    "a=(",
    "a[0]=",
    "((",
    "!(",
    "@(",
    "%",
    "^",
    ",",
    ":",
    "touch pwned",
    "; touch pwned",
    "$(touch pwned)",
    "`touch pwned`",
    " > pwned",
    "\ntouch pwned\n",
    "|touch pwned",
    "{touch,pwned}",
];

pub(crate) struct Generator<'a> {
    pub(crate) random: Random,
    pub(crate) lines: &'a [String],
    /// How much more may be nested.
    room: usize,
    /// Here-documents whose texts are still to come.
    owed: Vec<String>,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(random: Random, lines: &'a [String]) -> Self {
        Self {
            random,
            lines,
            room: 0,
            owed: vec![],
        }
    }

    /// Makes one script.
    pub(crate) fn script(&mut self) -> String {
        self.room = 2 + self.random.below(10);
        let script = match self.random.below(10) {
            0..=4 => self.list(),
            5 => {
                let whole = self.list();
                self.damage(whole)
            }
            6 => self.line(),
            7 => {
                let line = self.line();
                self.wrap(&line)
            }
            _ => {
                let line = self.line();
                self.damage(line)
            }
        };
        self.settle(script)
    }

    /// Puts what is owed where it belongs: after the end of a line.
    fn settle(&mut self, mut script: String) -> String {
        for document in std::mem::take(&mut self.owed) {
            script.push('\n');
            script.push_str(&document);
        }
        script
    }

    fn line(&mut self) -> String {
        let all = self.lines;
        match all.is_empty() {
            true => self.list(),
            false => all[self.random.below(all.len())].clone(),
        }
    }

    fn damage(&mut self, mut text: String) -> String {
        for _ in 0..1 + self.random.below(3) {
            let places: Vec<usize> = text
                .char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .collect();
            let at = places[self.random.below(places.len())];
            let to = places[self.random.below(places.len())];
            match self.random.below(8) {
                0..=3 => text.insert_str(at, self.random.of(SHARDS)),
                4 => {
                    let end = places
                        .iter()
                        .find(|place| **place > at)
                        .copied()
                        .unwrap_or(at);
                    text.replace_range(at..end, "");
                }
                5 => {
                    let (from, to) = (at.min(to), at.max(to));
                    let piece = text[from..to].to_owned();
                    text.insert_str(to, &piece);
                }
                6 => {
                    let other = self.line();
                    let cut = other
                        .char_indices()
                        .map(|(at, _)| at)
                        .nth(self.random.below(other.chars().count() + 1));
                    text.insert_str(at, &other[cut.unwrap_or(0)..]);
                }
                _ => {
                    let end = places
                        .iter()
                        .find(|place| **place > at)
                        .copied()
                        .unwrap_or(at);
                    text.replace_range(at..end, self.random.of(SHARDS));
                }
            }
        }
        text
    }

    fn room(&mut self) -> bool {
        let some = self.room > 0;
        self.room = self.room.saturating_sub(1);
        some
    }

    fn blank(&mut self) -> &'static str {
        self.random.of(BLANKS)
    }

    fn list(&mut self) -> String {
        let mut text = self.pipeline();
        for _ in 0..self.random.below(3) {
            if !self.room() {
                break;
            }
            let joint = self.random.of(&[
                "; ",
                ";",
                " && ",
                "&&",
                " || ",
                "\n",
                "\n\n",
                " & ",
                " # touch pwned\n",
                ";\\\n",
            ]);
            if joint.contains('\n') {
                text = self.settle(text);
            }
            text.push_str(joint);
            text.push_str(&self.pipeline());
        }
        if self.random.one_in(12) {
            text.push_str(self.random.of(&[
                " # touch pwned",
                " &",
                ";",
                "\n",
                " # \\",
                "\t",
                " #'",
                "\\\n",
            ]));
        }
        text
    }

    fn pipeline(&mut self) -> String {
        let mut text = match self.random.below(25) {
            0 => "! ".to_owned(),
            1 => "time ".to_owned(),
            2 => "time -p ".to_owned(),
            _ => String::new(),
        };
        text.push_str(&self.command());
        while self.random.one_in(5) && self.room() {
            text.push_str(self.random.of(&[" | ", "|", " |\n", " |& ", "|\\\n"]));
            text.push_str(&self.command());
        }
        text
    }

    fn command(&mut self) -> String {
        if !self.room() {
            return self.simple();
        }
        match self.random.below(20) {
            0..=8 => self.simple(),
            9..=12 => self.compound(),
            13..=15 => {
                let inner = self.list();
                self.wrap(&inner)
            }
            16 => self.odd(),
            _ => self.words(),
        }
    }

    /// A command that is known to be calm, or now and then is not.
    fn simple(&mut self) -> String {
        let mut text = match self.random.below(30) {
            0 | 1 => self.random.of(HARM).to_owned(),
            _ => self.random.of(CALM).to_owned(),
        };
        for _ in 0..self.random.below(3) {
            text.push_str(self.blank());
            text.push_str(&self.word());
        }
        if self.random.one_in(8) {
            text.push_str(&self.redirection());
        }
        text
    }

    /// A command of any words at all.
    fn words(&mut self) -> String {
        let mut text = String::new();
        while self.random.one_in(6) {
            text.push_str(&self.assignment());
            text.push(' ');
        }
        let program = self.random.of(CALM).split(' ').next().unwrap_or("ls");
        text.push_str(&self.disguise(program));
        for _ in 0..self.random.below(4) {
            text.push_str(self.blank());
            text.push_str(&self.word());
        }
        text
    }

    /// Writes a word in another way that means the same.
    fn disguise(&mut self, word: &str) -> String {
        let half = word.len() / 2;
        let (one, two) = if word.is_char_boundary(half) {
            word.split_at(half)
        } else {
            (word, "")
        };
        match self.random.below(14) {
            0 => format!("\\{word}"),
            1 => format!("{one}\\\n{two}"),
            2 => format!("{one}''{two}"),
            3 => format!("'{one}'\"{two}\""),
            4 => format!("$'{word}'"),
            5 => format!("{one}\"\"{two}"),
            6 => format!("/bin/{word}"),
            7 => format!("/usr/bin/../bin/{word}"),
            8 => format!("\"{word}\""),
            9 => format!("$\"{word}\""),
            _ => word.to_owned(),
        }
    }

    fn assignment(&mut self) -> String {
        let name = self
            .random
            .of(&["x", "y", "A", "LC_ALL", "IFS", "PATH", "x1", "a[0]", "a[x]"]);
        let op = self.random.of(&["=", "=", "=", "+="]);
        let value = match self.random.below(8) {
            0 => format!("({} {})", self.word(), self.word()),
            1 => String::new(),
            2 => self.quoted_harm(),
            _ => self.word(),
        };
        format!("{name}{op}{value}")
    }

    fn quoted_harm(&mut self) -> String {
        let harm = self.random.of(HARM);
        match self.random.below(4) {
            0 => format!("'{harm}'"),
            1 => format!("\"{harm}\""),
            2 => format!("'a[$({harm})]'"),
            _ => format!("'; {harm}'"),
        }
    }

    fn word(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.random.below(2) * self.random.below(3) {
            let piece = self.piece();
            text.push_str(&piece);
        }
        text
    }

    fn piece(&mut self) -> String {
        if !self.room() {
            return self.random.of(PLAIN).to_owned();
        }
        match self.random.below(34) {
            0..=7 => self.random.of(PLAIN).to_owned(),
            8 => self.quoted_harm(),
            9 => "'a b'".to_owned(),
            10 | 11 => format!("\"{}\"", self.in_quotes()),
            12 => self
                .random
                .of(&[
                    "$'a\\nb'",
                    "$'\\x74\\x6f'",
                    "$'\\''",
                    "$'a\\'; touch pwned'",
                    "$'\\u00e9'",
                    "$'\\c'",
                    "$'\\0'",
                ])
                .to_owned(),
            13 => format!(
                "\\{}",
                self.random.of(&[
                    "a", " ", "$", "'", "\"", "\\", ";", "\n", "#", "*", "~", "{"
                ])
            ),
            14..=16 => format!("${{{}}}", self.parameter()),
            17 => format!("${}", self.random.of(NAMES)),
            18 | 19 => format!("$({})", self.list()),
            20 => format!("`{}`", self.list().replace('`', "\\`")),
            21 => format!("$(({}))", self.arithmetic()),
            22 => format!("{{{},{}}}", self.word(), self.word()),
            23 => self
                .random
                .of(&[
                    "{1..3}",
                    "{a..c}",
                    "{a,b}{c,d}",
                    "{a,}",
                    "{}",
                    "{a",
                    "{1..}",
                    "{,touch pwned}",
                ])
                .to_owned(),
            24 => self
                .random
                .of(&[
                    "~", "~/a", "~+", "~root", "~-", "a=~", "*", "?", "src/*", "[ab]*", "[!a]",
                    "!(a)", "@(a|b)", "**",
                ])
                .to_owned(),
            25 => format!("<({})", self.list()),
            26 => format!(">({})", self.list()),
            27 => "#".to_owned(),
            28 => format!("$[{}]", self.arithmetic()),
            29 => "\\\n".to_owned(),
            _ => self.random.of(PLAIN).to_owned(),
        }
    }

    fn in_quotes(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.random.below(3) {
            let piece = match self.random.below(11) {
                0 => format!("$({})", self.list()),
                1 => format!("`{}`", self.list().replace('`', "\\`").replace('"', "\\\"")),
                2 => format!("${{{}}}", self.parameter()),
                3 => format!("$(({}))", self.arithmetic()),
                4 => self.random.of(HARM).replace('"', "\\\""),
                5 => self
                    .random
                    .of(&[
                        "\\\"", "\\$", "\\`", "\\\\", "\\a", "\\\n", "'", "!", "#", "; ",
                    ])
                    .to_owned(),
                6 => format!("${}", self.random.of(NAMES)),
                _ => self.random.of(PLAIN).to_owned(),
            };
            text.push_str(&piece);
        }
        text
    }

    fn parameter(&mut self) -> String {
        let name = self.random.of(NAMES);
        match self.random.below(22) {
            0 => format!("#{name}"),
            1 => format!("!{name}"),
            2 => format!("{name}:-{}", self.word()),
            3 => format!("{name}-{}", self.word()),
            4 => format!("{name}:={}", self.word()),
            5 => format!("{name}:+{}", self.word()),
            6 => format!("{name}:?{}", self.word()),
            7 => format!("{name}#{}", self.word()),
            8 => format!("{name}%%{}", self.word()),
            9 => format!("{name}/{}/{}", self.word(), self.word()),
            10 => format!("{name}//{}/{}", self.word(), self.word()),
            11 => format!("{name}:{}", self.arithmetic()),
            12 => format!("{name}:{}:{}", self.arithmetic(), self.arithmetic()),
            13 => format!("{name}^^"),
            14 => format!("{name},{}", self.word()),
            15 => format!(
                "{name}@{}",
                self.random.of(&["Q", "E", "P", "A", "a", "U", "K"])
            ),
            16 => format!("{name}[{}]", self.arithmetic()),
            17 => format!("{name}[@]"),
            18 => format!("!{name}*"),
            19 => format!("!{name}[@]"),
            20 => format!(" {}; ", self.list()),
            _ => name.to_owned(),
        }
    }

    fn arithmetic(&mut self) -> String {
        match self.random.below(12) {
            0 => "1".to_owned(),
            1 => "x".to_owned(),
            2 => "x+1".to_owned(),
            3 => format!("${{{}}}", self.parameter()),
            4 => format!("$({})", self.list()),
            5 => "x=1".to_owned(),
            6 => "x++ , y".to_owned(),
            7 => format!("a[{}]", self.arithmetic()),
            8 => "1<<2".to_owned(),
            9 => "x>1?2:3".to_owned(),
            10 => "16#ff".to_owned(),
            _ => format!("({} * 2)", self.random.below(9)),
        }
    }

    fn redirection(&mut self) -> String {
        match self.random.below(18) {
            0 => " 2>&1".to_owned(),
            1 => " >/dev/null".to_owned(),
            2 => " 2>/dev/null".to_owned(),
            3 => " &>/dev/null".to_owned(),
            4 => " < a".to_owned(),
            5 => format!(" <<< {}", self.word()),
            6..=9 => self.document(),
            10 => format!(" > {}", self.word()),
            11 => format!(" < {}", self.word()),
            12 => " >&2".to_owned(),
            13 => " 2>&-".to_owned(),
            14 => format!(" {{fd}}> {}", self.word()),
            15 => format!(" >&{}", self.word()),
            16 => " <>a".to_owned(),
            _ => " 3<&0".to_owned(),
        }
    }

    fn document(&mut self) -> String {
        let end = self.random.of(&["EOF", "E", "end", "E F", "EO\\F", "$x"]);
        let (mark, plain) = match self.random.below(6) {
            0 => (format!(" <<'{end}'"), end.to_owned()),
            1 => (
                format!(" <<\"{}\"", end.replace(['\\', '$'], "")),
                end.replace(['\\', '$'], ""),
            ),
            2 => (" <<\\EOF".to_owned(), "EOF".to_owned()),
            3 => (
                " <<-EOF".to_owned(),
                self.random.of(&["EOF", "\tEOF", "\t\tEOF"]).to_owned(),
            ),
            4 => (" <<E'O'F".to_owned(), "EOF".to_owned()),
            _ => (" <<EOF".to_owned(), "EOF".to_owned()),
        };
        let body = match self.random.below(6) {
            0 => format!("$({})", self.list()),
            1 => format!("`{}`", self.list()),
            2 => self.random.of(HARM).to_owned(),
            3 => format!("${{x:-{}}}", self.word()),
            4 => "a\\\nEOF".to_owned(),
            _ => "text 'open \"too".to_owned(),
        };
        let close = match self.random.below(10) {
            0 => String::new(),
            1 => format!("{plain} "),
            2 => format!(" {plain}"),
            _ => plain,
        };
        let after = match self.random.below(4) {
            0 => format!("\n{}", self.simple()),
            _ => String::new(),
        };
        self.owed.push(format!("{body}\n{close}{after}"));
        mark
    }

    fn compound(&mut self) -> String {
        let tail = if self.random.one_in(8) {
            self.redirection()
        } else {
            String::new()
        };
        let text = match self.random.below(19) {
            0 => format!("if {}; then {}; fi", self.list(), self.list()),
            1 => format!(
                "if {}; then {}; elif {}; then {}; else {}; fi",
                self.list(),
                self.list(),
                self.list(),
                self.list(),
                self.list()
            ),
            2 => format!(
                "for x in {} {}; do {}; done",
                self.word(),
                self.word(),
                self.list()
            ),
            3 => format!("for x; do {}; done", self.list()),
            4 => format!("for ((x=0; x<2; x++)); do {}; done", self.list()),
            5 => format!("while false; do {}; done", self.list()),
            6 => format!("while read -r x; do {}; break; done", self.list()),
            7 => format!("until {}; do break; done", self.list()),
            8 => format!(
                "case {} in {}) {};; *) {};; esac",
                self.word(),
                self.word(),
                self.list(),
                self.list()
            ),
            9 => format!(
                "case x in (a|{}) {} ;& x) {};; esac",
                self.word(),
                self.list(),
                self.list()
            ),
            10 => format!("{{ {}; }}", self.list()),
            11 => format!("({})", self.list()),
            12 => {
                let name = self.random.of(&["f", "g", "ls", "f-g", "cat"]);
                format!("{name}() {{ {}; }}; {name} {}", self.list(), self.word())
            }
            13 => format!("function f {{ {}; }}; f", self.list()),
            14 => format!(
                "[[ {} {} {} ]]",
                self.word(),
                self.random
                    .of(&["=", "==", "!=", "=~", "<", "-eq", "-nt", "&&"]),
                self.word()
            ),
            15 => format!("(( {} ))", self.arithmetic()),
            16 => format!(
                "[[ {} {} ]]",
                self.random.of(&["-f", "-n", "-z", "-v", "!"]),
                self.word()
            ),
            17 => format!(
                "select x in {}; do {}; break; done",
                self.word(),
                self.list()
            ),
            _ => format!("f() ( {} ); f | f", self.list()),
        };
        text + &tail
    }

    /// Hands a script to something that runs it.
    fn wrap(&mut self, inner: &str) -> String {
        let quoted = format!("'{}'", inner.replace('\'', "'\\''"));
        let double = format!("\"{inner}\"");
        match self.random.below(36) {
            0 => format!("env {inner}"),
            1 => format!("env A=1 {inner}"),
            2 => format!("env -S {quoted}"),
            3 => format!("timeout 5 {inner}"),
            4 => format!("echo a b | xargs {inner}"),
            5 => format!("echo a | xargs -I{{}} {inner} {{}}"),
            6 => format!("find . -name a -exec {inner} \\;"),
            7 => format!("find . -name a -exec {inner} {{}} +"),
            8 => format!("sh -c {quoted}"),
            9 => format!("bash -c {double}"),
            10 => format!("bash -c {quoted} a b"),
            11 => format!("eval {quoted}"),
            12 => format!("eval {double}"),
            13 => format!("eval {inner}"),
            14 => format!("command {inner}"),
            15 => format!("builtin {inner}"),
            16 => format!("exec {inner}"),
            17 => format!("nice -n 5 {inner}"),
            18 => format!("nohup {inner}"),
            19 => format!("setsid {inner}"),
            20 => format!("stdbuf -oL {inner}"),
            21 => format!("trap {quoted} EXIT"),
            22 => format!("trap {quoted} DEBUG; true"),
            23 => format!("x={quoted}; eval \"$x\""),
            24 => format!("x={quoted}; $x"),
            25 => format!("echo {quoted} | sh"),
            26 => format!("bash <<< {quoted}"),
            27 => format!("x=$({inner}); echo \"$x\""),
            28 => format!("echo \"$({inner})\""),
            29 => format!("echo `{}`", inner.replace('\\', "\\\\").replace('`', "\\`")),
            30 => format!("f() {{ {inner}; }}; f a"),
            31 => format!("if true; then {inner}\nfi"),
            32 => format!("cat <(\n{inner}\n)"),
            33 => format!("coproc {inner}; wait"),
            34 => format!("alias ls={quoted}; ls"),
            _ => format!("{{ {inner}\n}} | cat"),
        }
    }

    /// Corners that deserve a line of their own.
    fn odd(&mut self) -> String {
        let list = self.list();
        match self.random.below(24) {
            0 => format!("x='a[$({list})]'; echo $((x))"),
            1 => format!("x='a[$({list})]'; [[ x -eq 1 ]]"),
            2 => format!("x='$({list})'; echo ${{x@P}}"),
            3 => format!("printf -v 'x[$({list})]' 1"),
            4 => format!("read 'x[$({list})]'"),
            5 => format!("unset 'x[$({list})]'"),
            6 => format!("declare -i x='y[$({list})]'"),
            7 => format!("test -v 'x[$({list})]'"),
            8 => format!("PS4='$({list})'; set -x; true"),
            9 => format!("set -- {list}; \"$@\""),
            10 => format!("x=({list}); \"${{x[@]}}\""),
            11 => format!("mapfile -C '{list} #' -c 1 x < README.md"),
            12 => "IFS=o; x=lso-a; $x".to_owned(),
            13 => format!("command_not_found_handle() {{ {list}; }}; nosuchprogram"),
            14 => format!("ls() {{ {list}; }}; ls"),
            15 => format!("PATH=. ; a {}", self.word()),
            16 => format!("let 'x[$({list})]=1'"),
            17 => format!("wait -n -p 'x[$({list})]'"),
            18 => format!("[ -v 'x[$({list})]' ]"),
            19 => format!("export -f f; f() {{ {list}; }}; bash -c f"),
            20 => format!("enable -n echo; echo {}", self.word()),
            21 => format!("hash -p /bin/touch ls; ls pwned{}", self.random.below(9)),
            22 => format!("exec 3< <({list}); cat <&3"),
            _ => format!("bind -x '\"a\":{list}'"),
        }
    }
}
