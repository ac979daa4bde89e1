use super::*;
use crate::language::told;

fn check(cases: &[(&str, &str)]) {
    told::check(read, cases);
}

#[test]
fn printing_is_harmless() {
    for script in [
        "",
        "1",
        "{print}",
        "{print $1}",
        "$1 > 5 {print}",
        "$1>5",
        "{if ($3 > 10) print $1}",
        "{if ($3 > 10) { print $1 } else print $2}",
        "BEGIN{FS=\":\"} {print $1}",
        "{a[$1]++} END{for (k in a) print k, a[k]}",
        "NR==1, NR>=5 && NR<=10",
        "NR>=5 && NR<=10",
        "NR > 1 { s += $2 } END { print s / NR }",
        "{print ($1 > 2)}",
        "{print ($1 > 2 ? \"a\" : \"b\")}",
        "{x = $1 > 2 ? 1 : 0; print x}",
        "{printf \"%s\\n\", $1}",
        "{printf(\"%-10s %s\\n\", $1, $2)}",
        "{printf \"%s > %s | system(\\\"x\\\")\\n\", $1, $2}",
        "/re/",
        "!/re/ {print}",
        "/a/,/b/",
        "/a\\/b/ {print}",
        "$0 ~ /x|y/ && !/z>/",
        "/[[:alpha:]]+/",
        "/[]a]/",
        "{gsub(/a/, \"b\"); print}",
        "{print $1/2, $2 / 4}",
        "{print a[1]/2/3}",
        "{print (1+2)/3}",
        "{print NR \": \" $0 > \"/dev/stderr\"}",
        "{print \"x\" > \"/dev/stdout\"}",
        "{ print > \"/dev/stderr\" }\n",
        "!seen[$0]++",
        "{ print length }",
        "length > 80",
        "length($0) > 80",
        "END{print NR}",
        "{while ((getline line) > 0) n++}",
        "{getline; print}",
        "{getline x; print x}",
        "{getline a[1]; getline $2}",
        "{getline < \"-\"}",
        "function f(a, b) { return a > b } { print f($1, $2) }",
        "# print > \"x\"\n{print}",
        "{print \"a # b\"}",
        "{print $1,\n$2}",
        "{ n = split($0, p, \"/\"); print p[n] }",
        "{ sub(/\\r$/, \"\") } 1",
        "BEGIN { print toupper(\"x\"); close(\"y\"); fflush() }",
        "BEGIN { printf \"%d\\n\", 1e-3 + .5 + 1. }",
        "{ a = a \\\n b } END { print a }",
        "BEGIN { while (i++ < 3) print i }",
        "BEGIN { do { i++ } while (i < 3) }",
        "BEGIN { for (i = 0; 9 > i; i++) print i }",
        "BEGIN { PROCINFO[\"sorted_in\"] = \"@ind_str_asc\" }",
        "{ print ($1 ~ /x/) ? 1 : 2 }",
        "$NF != \"x\" || $2 == 3 { next }",
        "{ print $1 >= 2 }",
        "{ delete a; exit 1 }",
        "{ x = y ~ /a/ ? 1 : 2; $1 = \"\"; print }",
        "BEGIN { print substr(\"abc\", 2) \"|\" index(\"a\", \"b\") }",
    ] {
        check(&[(script, "prints")]);
    }
}

#[test]
fn files_are_written() {
    check(&[
        ("{print > \"out\"}", "writes [out]"),
        ("{print >\"out\"}", "writes [out]"),
        ("{print >> \"out\"}", "writes [out]"),
        ("{print $1, $2 > \"out\"; x = 1}", "writes [out]"),
        ("{printf \"\" > \"out\"}", "writes [out]"),
        ("{printf(\"%s\", $1) > \"out\"}", "writes [out]"),
        ("{print(1)(2) > \"out\"}", "writes [out]"),
        ("{print (1 > 2) > \"out\"}", "writes [out]"),
        ("{print > $1}", "writes []"),
        ("{print > $1 \".txt\"}", "writes []"),
        ("{print > \"a\" \"b\"}", "writes []"),
        ("{print > \"/dev/stderr\" x}", "writes []"),
        ("{print > (\"a\")}", "writes []"),
        ("{print a > b}", "writes []"),
        ("{print a > b ? c : d}", "writes []"),
        ("{print a ? b : c > d}", "writes []"),
        ("{print $1,\n$2 > \"out\"}", "writes [out]"),
        ("{print a &&\nb > \"out\"}", "writes [out]"),
        ("{print \\\n> \"out\"}", "writes [out]"),
        ("BEGIN { printf \"\" > ARGV[1] }", "writes [], unknown"),
        ("{if (1 > 2) print > \"out\"}", "writes [out]"),
        ("{print \"a\\\"b\" > \"out\"}", "writes [out]"),
        ("{print > \"o\\x75t\"}", "writes []"),
        ("/a/{print>\"out\"}", "writes [out]"),
        ("function f() { print > \"out\" } { f() }", "writes [out]"),
        (
            "{print \"x\" > \"/inet/tcp/0/h/80\"}",
            "writes [/inet/tcp/0/h/80], calls",
        ),
        ("{print a[1 > 2] > \"out\"}", "writes [out]"),
        ("{print 1/2 > \"a/b\"}", "writes [a/b]"),
    ]);
}

#[test]
fn commands_run() {
    check(&[
        ("BEGIN{system(\"id\")}", "runs [id]"),
        ("BEGIN{system (\"id\")}", "runs [id]"),
        ("BEGIN{system(\"a\" $1)}", "runs []"),
        ("BEGIN{\"date\" | getline d}", "runs [date]"),
        (
            "BEGIN{while ((\"ls\" | getline f) > 0) print f}",
            "runs [ls]",
        ),
        ("BEGIN{cmd | getline}", "runs []"),
        ("BEGIN{x \"date\" | getline}", "runs []"),
        ("{print | \"sort\"}", "runs [sort]"),
        ("{print $1 | \"sort -u\"; y = 1}", "runs [sort -u]"),
        ("{print | \"sort\" x}", "runs []"),
        ("{print |& \"cat\"}", "runs [cat]"),
        ("BEGIN{\"cat\" |& getline}", "runs [cat]"),
        ("{printf \"x\" | cmd}", "runs []"),
        ("{x = y / 2; system(\"id\") / 3}", "runs [id]"),
        (
            "BEGIN{print \"a\" |& \"/inet/tcp/0/h/80\"}",
            "runs [/inet/tcp/0/h/80], calls",
        ),
    ]);
}

#[test]
fn files_and_the_environment_are_read() {
    check(&[
        ("BEGIN{getline < \"f\"}", "reads [f]"),
        (
            "BEGIN{while ((getline l < \"f\") > 0) print l}",
            "reads [f]",
        ),
        (
            "BEGIN{getline a[1] < \"f\"; getline $1 < \"g\"}",
            "reads [f|g]",
        ),
        (
            "BEGIN{getline < \"/inet/tcp/0/h/80\"}",
            "calls, reads [/inet/tcp/0/h/80]",
        ),
        ("BEGIN{getline l < f}", "unknown"),
        ("BEGIN{getline l < \"a\" b}", "unknown"),
        ("BEGIN{print ENVIRON[\"HOME\"]}", "secret"),
        ("BEGIN{for (k in ENVIRON) print k}", "secret"),
    ]);
}

#[test]
fn what_is_not_certain_is_unknown() {
    for script in [
        "@load \"filefuncs\"; BEGIN{}",
        "@include \"inplace\"",
        "@namespace \"x\"",
        "{f = \"system\"; @f(\"id\")}",
        "BEGIN{awk::system(\"id\")}",
        "BEGIN{foo(1)}",
        "/[/]/",
        "(1) /x/ {print}",
        "{x++ / 2 / 3}",
        "{print \"open",
        "/open",
        "BEGIN{ARGV[1] = \"/etc/shadow\"}",
        "BEGIN{SYMTAB[\"x\"] = 1}",
        "BEGIN{x >> 2}",
        "BEGIN{print `id`}",
        "BEGIN{getline (x) < \"f\"}",
        "$1system(\"id\")",
        "{1e1system(\"id\")}",
        "BEGIN{0x1Fgetline < \"f\"}",
    ] {
        assert!(read(script).unknown.is_some(), "{script}");
    }
}
