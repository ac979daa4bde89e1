//! What a shell may run, or leave running, that cannot be seen in the text of a
//! command.

use weighlock_marks::Shell;
use weighlock_policy::{Part, Permit};

use super::startup::plain_shell;
use crate::error::Error;
use crate::run::Case;
use crate::view::Run;

/// Refuses a command that was allowed for reading only, and may run what nobody
/// has seen. What a person's rule allows may be anything.
pub(super) fn check_blind(permit: &Permit, case: &Case, terminal: &Run) -> Result<(), Error> {
    let (command, parts) = (&case.request.command, &case.judged.judgement.facts.parts);
    if !permit.read_only() {
        return Ok(());
    }
    if may_evaluate(command) {
        return Err(unknown_values());
    }
    if plain_shell(&terminal.command) == Some(Shell::Zsh) {
        if parts.iter().any(counts) {
            return Err(unknown_values());
        }
        if sets_zsh(command) || parts.iter().any(names_zsh) {
            return Err(sets_the_shell());
        }
    }
    if sets_pager(command) || parts.iter().any(pages) {
        return Err(may_page());
    }
    if sets_letters(command) || parts.iter().any(names_letters) {
        return Err(sets_other_letters());
    }
    let stays = parts
        .iter()
        .any(|part| STAYS.contains(&part.program.as_str()));
    match stays || may_stay(command) {
        true => Err(takes_a_part()),
        false => Ok(()),
    }
}

/// Whether a command may set what means something to zsh alone, by whatever
/// name is a word of its own there (`path=.`, `for path in .`, `read path`).
fn sets_zsh(command: &str) -> bool {
    let apart = |char: char| char.is_whitespace() || ";|&()<>'\"=+".contains(char);
    command.split(apart).any(|word| ZSH.contains(&word))
}

/// The same, of a name that is only whole once the quotes are gone.
fn names_zsh(part: &Part) -> bool {
    let mut words = part.argv.iter().flatten();
    words.any(|word| {
        let name = word.split('=').next().unwrap_or_default();
        ZSH.contains(&name.trim_end_matches('+'))
    })
}

/// Whether zsh works out a number there, which it does by running what the
/// value of a variable says (`shift x`).
fn counts(part: &Part) -> bool {
    let is_number = |word: &Option<String>| {
        let digits = word.as_deref().map(|word| word.trim_start_matches('-'));
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let words = part.argv.get(1..).unwrap_or_default();
    match part.program.as_str() {
        "shift" | "exit" | "return" | "break" | "continue" => !words.iter().all(is_number),
        // The format comes first, or after `--`.
        "printf" => {
            words.iter().take(2).any(Option::is_none)
                || words.iter().flatten().any(|word| has_number(word))
        }
        _ => false,
    }
}

/// Whether a format of `printf` has a place for a number.
fn has_number(format: &str) -> bool {
    let how = |char: char| char.is_ascii_digit() || "-+ #.'$".contains(char);
    let places = { format.split('%').skip(1) }.map(|place| place.trim_start_matches(how));
    { places }.any(|place| place.starts_with(|kind| "*diouxXeEfFgGaA".contains(kind)))
}

/// Whether a command may have a tool start a pager after all, which runs what
/// is typed at it: by another one than there is (an empty one is the usual
/// one), or by taking the variables away that name it.
fn sets_pager(command: &str) -> bool {
    const PAGER: &str = "PAGER";
    let names = command.match_indices(PAGER);
    { names }.any(
        |(at, _)| match command[at + PAGER.len()..].strip_prefix('=') {
            Some(value) => {
                !value.starts_with("cat") || value[3..].starts_with(char::is_alphanumeric)
            }
            None => !is_value(&command[..at]),
        },
    )
}

/// Whether a text ends where the name of a variable whose value is wanted goes
/// on, or begins.
fn is_value(before: &str) -> bool {
    let in_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    before.trim_end_matches(in_name).ends_with('$')
}

fn pages(part: &Part) -> bool {
    let Some((program, words)) = part.argv.split_first() else {
        return false;
    };
    // `env -i`, or what may be that. Behind a wrapper it is a part of its own.
    let is_env = |name: &str| name == "env" || name.ends_with("/env");
    let bare = program.as_deref().is_none_or(is_env) && { words.iter() }
        .any(|word| word.as_deref().is_none_or(is_option));
    bare || part.argv.iter().flatten().any(|word| sets_pager(word))
}

fn is_option(word: &str) -> bool {
    word.starts_with('-')
}

/// Names by which a shell is told which bytes are letters.
const LETTERS: [&str; 3] = ["LC_ALL", "LC_CTYPE", "LANG"];

/// Whether a command may have the shell take bytes for other characters than
/// we do: in some encodings a backslash is half of a letter, and what it stood
/// before ends the command.
fn sets_letters(command: &str) -> bool {
    let in_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
    LETTERS.iter().any(|name| {
        command.match_indices(name).any(|(at, _)| {
            let (before, after) = (&command[..at], &command[at + name.len()..]);
            let is_word = !before.ends_with(in_name) && !after.starts_with(in_name);
            let value = after.strip_prefix('=').unwrap_or("?");
            is_word && !before.ends_with('$') && !is_usual(value)
        })
    })
}

fn names_letters(part: &Part) -> bool {
    part.argv.iter().flatten().any(|word| sets_letters(word))
}

/// Whether letters are ASCII or UTF-8 by a locale at the beginning of a text.
fn is_usual(text: &str) -> bool {
    let text = text.trim_start_matches(['"', '\'']);
    let end = text.find(|char: char| char.is_whitespace() || ";|&)\"'".contains(char));
    let locale = text[..end.unwrap_or(text.len())].to_ascii_lowercase();
    matches!(locale.as_str(), "" | "c" | "posix")
        || (locale.ends_with(".utf-8") || locale.ends_with(".utf8")) && !locale.contains('$')
}

/// Parameters of zsh that other shells do not know, or that it counts with.
const ZSH: [&str; 45] = [
    "BAUD",
    "COLUMNS",
    "DIRSTACKSIZE",
    "EGID",
    "ERRNO",
    "EUID",
    "GID",
    "HISTSIZE",
    "KEYBOARD_HACK",
    "KEYTIMEOUT",
    "LINES",
    "LISTMAX",
    "LOGCHECK",
    "PERIOD",
    "REPORTMEMORY",
    "REPORTTIME",
    "SAVEHIST",
    "SHLVL",
    "TMOUT",
    "TRY_BLOCK_ERROR",
    "TRY_BLOCK_INTERRUPT",
    "TTYIDLE",
    "UID",
    "aliases",
    "argv",
    "builtins",
    "cdpath",
    "commands",
    "fignore",
    "fpath",
    "FPATH",
    "functions",
    "galiases",
    "histchars",
    "module_path",
    "MODULE_PATH",
    "options",
    "parameters",
    "path",
    "precmd_functions",
    "preexec_functions",
    "prompt",
    "saliases",
    "zle_bracketed_paste",
    "zle_highlight",
];

/// What goes on by itself, or comes again while a line is typed.
const STAYS: [&str; 3] = ["setsid", "trap", "eval"];

/// Whether a command may leave something behind that reads the terminal when
/// the next line is typed. What is in the background of a shell may not, unless
/// it is in the shell's own group (`$(… &)`) or has left its session.
fn may_stay(command: &str) -> bool {
    let command = outside_quotes(command);
    let mut rest = command.as_str();
    // `&&`, `>&`, `<&` and `&>` are something else.
    while let Some(at) = rest.find('&') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let joined = before.ends_with(['>', '<', '&']) || after.starts_with(['&', '>']);
        if !joined || before.ends_with('|') {
            return true;
        }
        rest = after.strip_prefix('&').unwrap_or(after);
    }
    let is_word = |word: &str| command.split_whitespace().any(|each| each == word);
    ["<(", ">(", "TRAP"]
        .iter()
        .any(|part| command.contains(part))
        || is_word("coproc")
}

/// The same as [`unquoted`], without what stands in double quotes.
fn outside_quotes(command: &str) -> String {
    let rest = unquoted(command);
    match rest.contains(['`', '\n']) || rest.contains("$(") {
        true => rest,
        false => rest.split('"').step_by(2).collect(),
    }
}

/// Whether a shell may take the value of a variable for something to run:
/// where numbers are expected. Nobody knows what the shell keeps in it.
fn may_evaluate(command: &str) -> bool {
    let command = unquoted(command);
    // Subscripts are numbers, too, wherever they stand; and `test` knows them.
    let is_test = |word: &str| word.trim_start_matches(['(', '{', '!', ';', '&', '|']) == "test";
    ["((", "[", "${"].iter().any(|part| command.contains(part))
        || command.split_whitespace().any(is_test)
}

/// A command without what stands in single quotes, which no shell evaluates
/// where it stands. Where a quote may be none, all of it is left.
fn unquoted(command: &str) -> String {
    let odd = ["$'", "#", "<<", "\n", "`", "$("];
    if odd.iter().any(|part| command.contains(part)) {
        return command.replace("\\\n", "");
    }
    let mut rest = String::new();
    let mut chars = command.chars();
    let mut in_double = false;
    while let Some(char) = chars.next() {
        match char {
            '\\' => rest.extend(chars.next().filter(|_| in_double)),
            '\'' if !in_double => {
                chars.by_ref().find(|&char| char == '\'');
            }
            _ => {
                in_double ^= char == '"';
                rest.push(char);
            }
        }
    }
    rest
}

fn unknown_values() -> Error {
    Error::invalid(
        "invalid_line",
        "it may run what is in a variable of the shell, which nobody has judged; nothing was sent"
            .into(),
        "use it without `((`, `[`, `${` and `test`, or run it as a command of its own",
    )
}

fn sets_the_shell() -> Error {
    Error::invalid(
        "invalid_line",
        "it may set a variable that is special to zsh, and nobody has judged \
         that; nothing was sent"
            .into(),
        "use other names, or run it as a command of its own",
    )
}

fn may_page() -> Error {
    Error::invalid(
        "invalid_line",
        "it may start a pager, which runs what is typed at it, and nobody has judged that; nothing \
         was sent"
            .into(),
        "leave the variables that name a pager as they are, or run it as a command of its own",
    )
}

fn sets_other_letters() -> Error {
    Error::invalid(
        "invalid_line",
        "it may have the shell take bytes for other letters, and read later lines in another way \
         than they are judged; nothing was sent"
            .into(),
        "use `C` or a locale with UTF-8, written out, or run it as a command of its own",
    )
}

fn takes_a_part() -> Error {
    Error::invalid(
        "invalid_line",
        "it may leave something running that takes a part of the next line, and nobody has judged \
         the rest; nothing was sent"
            .into(),
        "use it without `&`, `<(`, `trap`, `setsid` and `eval`, or in a terminal of its own",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_may_evaluate_is_noticed() {
        for evaluated in [
            "echo $((a))",
            "[[ a -eq 0 ]]",
            "echo ${HOME:c:1}",
            "a[z]=1",
            "a=([z]=1)",
            "[ $x \"$y\" ]",
            "true && test $x $y",
            "echo \"it's\" a[z] 'x'",
            "echo $'\\'' [ 'x'",
            "ls # don't\necho $((x)) # '",
            "echo \"$(\\\n(x))\"",
            "cat <<E\n'\nE\necho $((x))",
        ] {
            assert!(may_evaluate(evaluated), "{evaluated}");
        }
        for plain in [
            "ls",
            "printf '\\033[31m'",
            "echo \\[",
            "cargo tests",
            "z='b[1]'",
        ] {
            assert!(!may_evaluate(plain), "{plain}");
        }
    }

    #[test]
    fn where_zsh_would_count_is_noticed() {
        for counts in ["%d", "a%5.2f", "%s %-*s", "%%%x"] {
            assert!(has_number(counts), "{counts}");
        }
        for plain in ["", "100%", "%s\\n", "%-10s|%b", "%%"] {
            assert!(!has_number(plain), "{plain}");
        }
    }

    #[test]
    fn another_pager_is_noticed() {
        for paged in [
            "PAGER= man ls",
            "export MANPAGER=",
            "GIT_PAGER=catch git log",
            "PAGER+=x",
            "for PAGER in x; do :; done",
        ] {
            assert!(sets_pager(paged), "{paged}");
        }
        for plain in ["PAGER=cat man ls", "echo $PAGER $GIT_PAGER", "git log"] {
            assert!(!sets_pager(plain), "{plain}");
        }
    }

    #[test]
    fn other_letters_are_noticed() {
        for other in [
            "LC_ALL=zh_CN.gbk",
            "export LANG=\"ja_JP.SJIS\"",
            "LC_ALL=$x",
            "LC_ALL=$x.utf8",
            "for LC_CTYPE in zh_CN.gbk; do :; done",
            "read LANG < file",
            "LANG+=x",
        ] {
            assert!(sets_letters(other), "{other}");
        }
        for usual in [
            "LC_ALL=C sort x",
            "LANG='C.UTF-8'; ls",
            "LC_ALL=en_US.utf8",
            "echo $LANG",
            "LANGUAGE=de ls ERLANG",
            "(LC_ALL=)",
        ] {
            assert!(!sets_letters(usual), "{usual}");
        }
    }

    #[test]
    fn what_may_stay_is_noticed() {
        for stays in [
            "sleep 9 &",
            "sleep 9& ls",
            "sleep 9 &| ls",
            ": $(head -c8 </dev/tty >/dev/null &)",
            "echo \"$(sleep 9 &)\"",
            "cat <(sleep 9)",
            "coproc cat",
            "TRAPALRM() { read -k3 x; }",
            "ls && sleep 9 &",
            "ls &>x & ls",
        ] {
            assert!(may_stay(stays), "{stays}");
        }
        for gone in [
            "ls && pwd || true",
            "ls 2>&1",
            "ls >&2 && cat <&0",
            "ls &>/dev/null",
            "ls &>>log",
            "echo 'a & b' \"c & d\" e\\&f",
        ] {
            assert!(!may_stay(gone), "{gone}");
        }
    }
}
