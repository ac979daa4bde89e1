#!/bin/bash
# smoke.sh root|user cgroup|none: what must work on every kernel, by the real
# binary. Says `ok` or `FAILED` with the kernel, the user and the line. Run by
# kernels/run in a virtual machine; leaves its files and its server behind.
set -u
who=$1 groups=$2
where="Linux $(uname -r | cut -d. -f1,2), $who, $([ "$groups" = cgroup ] && echo with || echo without) cgroups"
status=0

# is WHAT WANTED FOUND: compares two texts.
is() {
    if [ "$2" = "$3" ]; then
        echo "ok     $where: $1 (${SECONDS}s)"
    else
        echo "FAILED $where, line ${BASH_LINENO[0]}: $1"
        printf '  wanted: %s\n  found:  %s\n' "$2" "$3"
        status=1
    fi
}
# has WHAT PART TEXT: looks for one in the other.
has() {
    case $3 in
    *"$2"*) echo "ok     $where: $1 (${SECONDS}s)" ;;
    *)
        echo "FAILED $where, line ${BASH_LINENO[0]}: $1"
        printf '  wanted: %s\n  in:     %s\n' "$2" "$(tr '\n' '~' <<<"$3" | sed 's/~ */ /g')"
        status=1
        ;;
    esac
}
# Prints what a run says of itself, in one line.
run() { weighlock run --json "$@" 2>&1 </dev/null | tr -d '\n' | sed 's/  */ /g'; }

# Tells whether the kernel is this one or a later one.
since() { [ "$(printf '%s\n' "$1" "$(uname -r)" | sort -V | head -n 1)" = "$1" ]; }

[ "$who" = root ] && project=/srv/root-$groups id=65534 || project=$HOME/project-$groups id=1000
mkdir "$project"
# Before, there are no copies of what root owns; see the end.
[ "$who" != root ] || since 5.19 || { chown 1000:1000 "$project" && id=1000; }
cd "$project" || exit 1
export XDG_CONFIG_HOME=$HOME/config-$groups XDG_STATE_HOME=$HOME/state-$groups
mkdir -p "$XDG_CONFIG_HOME/weighlock"
mkdir -p "/tmp/memory-$who"
cat >"$XDG_CONFIG_HOME/weighlock/config.toml" <<S
[sandbox.default]
memory_mib = 128
processes = 40
[sandbox.memory]
directory = "/tmp/memory-$who"
S
if [ "$who" = root ]; then
    mkdir -p /srv/own
    printf '[sandbox.own]\ndirectory = "/srv/own"\n' >>"$XDG_CONFIG_HOME/weighlock/config.toml"
fi
# Not by the first command, which waits for it no longer than a real machine takes.
serve() {
    weighlock serve >/dev/null 2>&1 </dev/null &
    for _ in $(seq 600); do [ ! -S "$XDG_STATE_HOME/weighlock/weighlock.sock" ] || return; sleep 0.2; done
}
serve

# Walls.
found=$(run -- 'id -u; hostname; cat /etc/hostname; cat /etc/machine-id')
has "walls are full" '"level": "full"' "$found"
has "an ordinary user, on a machine without the host's name" "\"stdout\": \"$id\\nlocalhost\\nlocalhost\\n\"" "$found"
has "processes are bounded" '"name": "pids", "holds": "whole"' "$found"
[ "$groups" = cgroup ] && how='"holds": "whole", "how": "cgroup v2"' || how='"holds": "partly"'
has "memory is bounded" "\"name\": \"memory\", $how" "$found"

# Limits.
found=$(run -- 'head -c 300M /dev/zero > /dev/shm/x; sleep 60')
has "memory ends a run" '"code": "memory_limit"' "$found"
# bash tries again when it may not start more, and is there when somebody looks.
found=$(run --shell bash -- 'for i in $(seq 80); do sleep 60 & done; wait')
has "processes end a run" '"code": "process_limit"' "$found"

# What it says about itself.
found=$(weighlock doctor 2>&1 </dev/null)
problems=$(grep -c '^✗' <<<"$found")
[ "$groups" = cgroup ] && want=0 || want=1
is "doctor: problems" "$want" "$problems$([ "$problems" = "$want" ] || grep '^✗' <<<"$found")"
[ "$groups" = cgroup ] || has "doctor: which" '✗ cgroups' "$found"
[ "$groups" = cgroup ] || exit "$status"

# Ways out: each is open from here, and shut inside.
mkdir -p "$HOME/other"
echo canary >"$HOME/other/canary"
setsid sleep 600 &
outside=$!
busybox nc -l -p 7777 >/dev/null 2>&1 &
listener=$!
cat >.escape <<S
try() { if ( eval "\$1" ) >/dev/null 2>&1 </dev/null; then echo "OPEN: \$1"; else echo shut; fi; }
try 'cat $HOME/other/canary'
try 'cat /proc/$outside/environ'
try 'kill -0 $outside'
try 'test -e /proc/$outside'
try 'exec 3<>/dev/tcp/127.0.0.1/7777'
S
is "the ways out are there" "OPEN" "$(bash .escape | cut -d: -f1 | sort -u)"
cat >>.escape <<'S'
try 'touch /etc/new'
try 'echo 99999 > /proc/sys/kernel/pid_max'
try 'mount -t tmpfs tmp /tmp'
try 'unshare --user true'
try 'hostname other'
try 'cat /sys/fs/cgroup/cgroup.procs'
try 'test -e /.old -o -e /.name -o -e /.empty'
S
is "no way out is open inside" "shut" "$(weighlock run -q -- 'bash ./.escape' 2>&1 </dev/null | sort -u)"
kill "$outside" "$listener" 2>/dev/null

# A copy: seen, applied, taken back.
mkdir dir
printf 'old\n' >edited
for name in deleted moved dir/inside; do echo "$name" >"$name"; done
chown -R --reference=. .
tree() { for name in $(find_all | sort); do printf '%s:%s ' "$name" "$(test -d "$name" || cat "$name")"; done; }
find_all() { (shopt -s globstar nullglob && printf '%s\n' **); }
before=$(tree)
weighlock run --no-wait -q -- 'sed -i s/old/new/ edited; rm deleted; mv moved there; rm -r dir; mkdir dir; echo 1 > dir/fresh' >/dev/null 2>&1 </dev/null
is "a try changes nothing, and waits" "75 $before" "$? $(tree)"
weighlock commit @last >commit.said 2>&1 </dev/null
code=$? said=$(cat commit.said)
rm commit.said
is "its changes are applied" "0 new-1- " "$code $(cat edited)-$(cat dir/fresh)-$(ls deleted moved dir/inside 2>/dev/null) $([ "$code" = 0 ] || echo "$said")"
weighlock undo @last >/dev/null 2>&1 </dev/null
is "and taken back" "0 $before" "$? $(tree)"

# A terminal.
weighlock term open shell -- bash >/dev/null 2>&1 </dev/null
found=$(weighlock term exec shell -- 'readlink /proc/self/fd/0; echo $((6 * 7))' 2>&1 </dev/null | tr '\n' ' ')
is "a terminal" "/dev/pts/0 42 " "$found"

# The end: nothing that a run started goes on.
weighlock run -q --timeout 2s -- 'setsid sleep 987 & (setsid sh -c "sleep 986" &); sleep 985' >/dev/null 2>&1 </dev/null
is "a time limit" 124 $?
left=$(grep -l -a 'sleep.98[567]' /proc/[0-9]*/cmdline 2>/dev/null | grep -v "/$$/")
is "detached children end with the run" "" "$left"

# Bonuses of newer kernels: what is done without says what is missing.
if [ "$who" = root ]; then
    if ! since 5.19; then
        found=$(weighlock run --no-wait --sandbox own -- 'sed -i s/a/b/ file' 2>&1 </dev/null)
        has "root's own directory has no copy" 'since Linux 5.19' "$found"
        has "and can be read" 65534 "$(weighlock run -q --sandbox own -- 'id -u' 2>&1 </dev/null)"
    fi
    since 6.3 && want=65534 || want='a tmpfs can since Linux 6.3'
    has "root's directory on a tmpfs" "$want" "$(weighlock run -q --sandbox memory -- 'id -u' 2>&1 </dev/null)"
fi
if [ "$who" = user ] && ! since 6.6; then
    export XDG_STATE_HOME=/tmp/state
    serve
    has "the state on a tmpfs" 'projects cannot be shown as copies' "$(weighlock doctor 2>&1 </dev/null)"
fi
exit "$status"
