//! Reads filters of jq.
//!
//! jq writes nothing and runs nothing. It shows the environment, and it takes
//! code from modules; a name nobody knows may come from a newer version or
//! from another program that reads almost the same language.

use super::Deeds;
use crate::effect::Effect;

/// Strings inside strings before a filter is given up.
const DEPTH: usize = 32;

/// Tells what a filter does.
pub(crate) fn read(script: &str) -> Deeds {
    let mut deeds = Deeds::default();
    let mut tokens = Vec::new();
    let text: Vec<char> = script.chars().collect();
    let result = match tokenize(&text, 0, 0, &mut tokens) {
        Ok(_) => judge(&tokens, &mut deeds),
        Err(reason) => Err(reason),
    };
    deeds.unknown = result.err();
    deeds
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum JqToken {
    /// A name that stands alone: a function or a keyword.
    Name(String),
    /// A name behind `$`.
    Variable(String),
    /// `.name`, a number, a string without code in it, `@format`.
    Value,
    /// Any other character.
    Sign(char),
}

type Result<T = ()> = std::result::Result<T, &'static str>;

/// Splits text into tokens and returns where it stopped: at the end, or
/// inside a string behind the parenthesis that closes its code.
fn tokenize(
    text: &[char],
    mut at: usize,
    depth: usize,
    tokens: &mut Vec<JqToken>,
) -> Result<usize> {
    if depth > DEPTH {
        return Err("strings are nested too deeply");
    }
    let mut open = 0_usize;
    while let Some(&c) = text.get(at) {
        match c {
            '#' => at = comment(text, at)?,
            '"' => at = string(text, at + 1, depth, tokens)?,
            '.' => at = dot(text, at, tokens),
            '$' => {
                let end = name(text, at + 1);
                tokens.push(JqToken::Variable(text[at + 1..end].iter().collect()));
                at = end;
            }
            '@' => {
                at = name(text, at + 1);
                tokens.push(JqToken::Value);
            }
            _ if c.is_ascii_digit() => {
                at = number(text, at);
                tokens.push(JqToken::Value);
            }
            _ if starts_name(c) => {
                let end = name(text, at);
                tokens.push(JqToken::Name(text[at..end].iter().collect()));
                at = end;
            }
            ')' if open == 0 && depth > 0 => return Ok(at + 1),
            '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | ':' | '|' | '=' | '<' | '>' | '+'
            | '-' | '*' | '/' | '%' | '!' | '?' => {
                match c {
                    '(' => open += 1,
                    ')' => open = open.saturating_sub(1),
                    _ => {}
                }
                tokens.push(JqToken::Sign(c));
                at += 1;
            }
            _ if c.is_ascii_whitespace() => at += 1,
            _ => return Err("a character is not known"),
        }
    }
    match depth {
        0 => Ok(at),
        _ => Err("a string has no end"),
    }
}

/// Skips a comment. Newer versions let a backslash carry it into the next
/// line, older ones do not.
fn comment(text: &[char], at: usize) -> Result<usize> {
    let end = text[at..]
        .iter()
        .position(|c| matches!(c, '\n' | '\r'))
        .map_or(text.len(), |length| at + length);
    match text[at..end].last() {
        Some('\\') => Err("a comment ends in a backslash"),
        _ => Ok(end),
    }
}

/// Reads a string and the code inside it.
fn string(text: &[char], mut at: usize, depth: usize, tokens: &mut Vec<JqToken>) -> Result<usize> {
    tokens.push(JqToken::Value);
    loop {
        match (text.get(at), text.get(at + 1)) {
            (Some('"'), _) => return Ok(at + 1),
            (Some('\\'), Some('(')) => {
                tokens.push(JqToken::Sign('('));
                at = tokenize(text, at + 2, depth + 1, tokens)?;
                tokens.push(JqToken::Sign(')'));
            }
            (Some('\\'), Some(_)) => at += 2,
            (Some('\\') | None, _) => return Err("a string has no end"),
            (Some(_), _) => at += 1,
        }
    }
}

/// Reads what begins with a dot: a field, `..`, a number, or the input.
fn dot(text: &[char], at: usize, tokens: &mut Vec<JqToken>) -> usize {
    tokens.push(JqToken::Value);
    match text.get(at + 1) {
        Some('.') => at + 2,
        Some(c) if starts_name(*c) => at + 1 + word(&text[at + 1..]),
        Some(c) if c.is_ascii_digit() => number(text, at),
        _ => at + 1,
    }
}

/// Returns the end of a number, as jq's own grammar has it: a dot behind it
/// is part of it.
fn number(text: &[char], mut at: usize) -> usize {
    let digits = |mut at: usize| {
        while text.get(at).is_some_and(char::is_ascii_digit) {
            at += 1;
        }
        at
    };
    at = digits(at);
    if text.get(at) == Some(&'.') {
        at = digits(at + 1);
    }
    if matches!(text.get(at), Some('e' | 'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some('+' | '-')));
        let end = digits(at + 1 + sign);
        if end > at + 1 + sign {
            at = end;
        }
    }
    at
}

/// Returns the end of a name, with the modules in front of it.
fn name(text: &[char], mut at: usize) -> usize {
    loop {
        at += word(&text[at..]);
        let more = text.get(at + 2).is_some_and(|c| starts_name(*c));
        if !(text.get(at) == Some(&':') && text.get(at + 1) == Some(&':') && more) {
            return at;
        }
        at += 2;
    }
}

fn word(text: &[char]) -> usize {
    text.iter()
        .take_while(|c| c.is_ascii_alphanumeric() || **c == '_')
        .count()
}

fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn judge(tokens: &[JqToken], deeds: &mut Deeds) -> Result {
    let own = definitions(tokens);
    let mut brackets = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            JqToken::Sign(open @ ('(' | '[' | '{')) => brackets.push(*open),
            JqToken::Sign(')' | ']' | '}') => {
                brackets.pop();
            }
            JqToken::Variable(name) if name == "ENV" => deeds.effects.add(Effect::Secret),
            JqToken::Variable(name) if name.contains("::") => return Err("a module is used"),
            JqToken::Name(name) if !is_key(tokens, at, brackets.last()) => match name.as_str() {
                "env" => deeds.effects.add(Effect::Secret),
                "import" | "include" | "modulemeta" => return Err("a module is used"),
                name if name.contains("::") => return Err("a module is used"),
                name if KNOWN.contains(&name) || own.contains(&name) => {}
                _ => return Err("a function is not known"),
            },
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether a name is the key of an object: `{env: 1}`, `{env}`.
fn is_key(tokens: &[JqToken], at: usize, bracket: Option<&char>) -> bool {
    let before = at.checked_sub(1).map(|before| &tokens[before]);
    bracket == Some(&'{')
        && matches!(before, Some(JqToken::Sign('{' | ',')))
        && matches!(tokens.get(at + 1), Some(JqToken::Sign(':' | ',' | '}')))
}

/// Returns the names that a filter defines itself, with their parameters.
fn definitions(tokens: &[JqToken]) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = tokens.iter();
    while let Some(token) = rest.next() {
        if *token != JqToken::Name("def".into()) {
            continue;
        }
        for token in rest.by_ref() {
            match token {
                JqToken::Name(name) => names.push(name.as_str()),
                JqToken::Sign('(' | ';') | JqToken::Variable(_) => {}
                _ => break,
            }
        }
    }
    names
}

/// Keywords, and functions that do no more than calculate.
#[rustfmt::skip]
const KNOWN: &[&str] = &[
    "def", "if", "then", "elif", "else", "end", "as", "reduce", "foreach", "try", "catch",
    "label", "break", "and", "or", "not", "null", "true", "false", "__loc__",
    "IN", "INDEX", "GROUP_BY", "UNIQUE_BY", "JOIN", "abs", "acos", "acosh", "add", "all", "any",
    "arrays", "ascii", "ascii_downcase", "ascii_upcase", "asin", "asinh", "atan", "atan2",
    "atanh", "booleans", "bsearch", "builtins", "capture", "cbrt", "ceil", "combinations",
    "contains", "copysign", "cos", "cosh", "debug", "del", "delpaths", "drem", "empty",
    "endswith", "erf", "erfc", "error", "exp", "exp10", "exp2", "explode", "expm1", "fabs",
    "fdim", "finites", "first", "flatten", "floor", "fma", "fmax", "fmin", "fmod", "format",
    "frexp", "from_entries", "fromdate", "fromdateiso8601", "fromjson", "fromstream", "gamma",
    "get_jq_origin", "get_prog_origin", "get_search_list", "getpath", "gmtime", "group_by",
    "gsub", "halt", "halt_error", "has", "have_decnum", "have_literal_numbers", "hypot",
    "implode", "in", "index", "indices", "infinite", "input", "input_filename",
    "input_line_number", "inputs", "inside", "isempty", "isfinite", "isinfinite", "isnan",
    "isnormal", "isvalid", "iterables", "j0", "j1", "jn", "join", "keys", "keys_unsorted",
    "last", "ldexp", "leaf_paths", "length", "lgamma", "lgamma_r", "limit", "localtime", "log",
    "log10", "log1p", "log2", "logb", "ltrim", "ltrimstr", "map", "map_values", "match", "max",
    "max_by", "min", "min_by", "mktime", "modf", "nan", "nearbyint", "nextafter", "nexttoward",
    "normals", "now", "nth", "nulls", "numbers", "objects", "path", "paths", "pick", "pow",
    "pow10", "range", "recurse", "recurse_down", "remainder", "repeat", "reverse", "rindex",
    "rint", "round", "rtrim", "rtrimstr", "scalars", "scalars_or_empty", "scalb", "scalbln",
    "scan", "select", "setpath", "significand", "sin", "sinh", "skip", "sort", "sort_by",
    "split", "splits", "sqrt", "startswith", "stderr", "strflocaltime", "strftime", "strings",
    "strptime", "sub", "tan", "tanh", "test", "tgamma", "to_entries", "toarray", "todate",
    "todateiso8601", "tojson", "tonumber", "tostream", "tostring", "transpose", "trim",
    "trimstr", "trunc", "truncate_stream", "type", "unique", "unique_by", "until",
    "utf8bytelength", "values", "walk", "while", "with_entries", "y0", "y1", "yn", "dateadd",
    "datesub", "date",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_is_harmless() {
        for script in [
            "",
            ".",
            "..",
            ".a.b[0]",
            ".[]|.name",
            ".env",
            ".a.env",
            ".env.PATH",
            ".\"env\"",
            ".[\"env\"]",
            "{env: 1}",
            "{env}",
            "{a: 1, env}",
            "{env, b: 2}",
            "\"env\"",
            "\"a \\(.env) b\"",
            "\"$ENV and env\"",
            "# env\n.",
            "$env",
            "$x.env",
            "map(select(.age > 30) | {name, age})",
            "to_entries[] | \"\\(.key)=\\(.value)\"",
            "[.[] | .a + 1.5e3] | add / length",
            "reduce .[] as $x (0; . + $x)",
            "foreach .[] as [$a, $b] (0; . + $a; [$b, .])",
            "def f(x; $y): x + $y; f(.a; 2)",
            "def f: def g: 1; g; f",
            "if .a then 1 elif .b then 2 else 3 end",
            "try error(\"x\") catch .",
            "label $out | .[] | break $out",
            "input_filename, input_line_number, $__loc__",
            "inputs | debug | stderr",
            "@base64d, @sh \"echo \\(.x)\", @csv",
            ".a // \"none\" | ascii_downcase",
            ".[2:4], .[-1:]",
            ".a? , .b?",
            ". as {a: $x, b: [$y]} ?// $z | $x",
            ".dependencies | keys[]",
            "\"nested \\(\"in \\(.x) side\") done\"",
            "\"paren \\((1 + 2) * 3)\"",
            "$ARGS.named, $__prog_args",
            ".\"a-b\".c",
            "limit(3; .[])",
            "del(.a) | .b |= . + 1",
        ] {
            assert_eq!(read(script), Deeds::default(), "{script}");
        }
    }

    #[test]
    fn the_environment_is_a_secret() {
        for script in [
            "env",
            "env.PATH",
            "$ENV",
            "$ENV.HOME",
            ". | env",
            "{a: env}",
            "{(env.A): 1}",
            "[env]",
            "\"a \\(env.HOME)\"",
            "\"a \\(\"b \\($ENV.X)\")\"",
            "@sh \"\\(env)\"",
            "1.env",
            "..env",
            "{\"a\": 1} | env",
            "def f: env; f",
            "env|keys",
            "{a: [1, env]}",
            "{a: (1, env)}",
            "#x\nenv",
            "\"\\\\\" + env.A + \"\"",
            ". env",
        ] {
            assert!(read(script).effects.has(Effect::Secret), "{script}");
        }
    }

    #[test]
    fn modules_and_strangers_are_unknown() {
        for script in [
            "import \"a\" as a; a::f",
            "include \"a\"; f",
            "a::f",
            "$a::b",
            "load(\"x\")",
            "strenv(HOME)",
            "system(\"id\")",
            "envsubst",
            "\"open",
            "\"open \\(.a",
            "'x'",
            "# \\\n\"\nenv\"",
            "\"\\(load(\"x\"))\"",
            ". ~ 1",
            "\u{a0}env",
        ] {
            assert!(read(script).unknown.is_some(), "{script}");
        }
    }
}
