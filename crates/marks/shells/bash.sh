# Tells the terminal's owner where prompts, commands and outputs begin and end.
# Read by bash instead of ~/.bashrc, which is read from here.

# Bash has read all of this already; no program shall read it after.
command rm -f -- @FILE@ 2>/dev/null

# Before anything of the user's, who may have bash export what is set.
declare -r __weighlock_nonce=@NONCE@
declare -r __weighlock_plain=$'\e]133;B;wl='$__weighlock_nonce$'\a'
declare -r __weighlock_edits=$'\e]133;B;edits;wl='$__weighlock_nonce$'\a'
declare +x __weighlock_nonce __weighlock_plain __weighlock_edits
declare __weighlock_seen= __weighlock_text= __weighlock_input=

# On lines of their own, as some DEBUG traps look for the exact name there.
# Tracing (`set -x`) stays silent; marks go where bash writes its prompts.
declare -r __weighlock_first=$'{\n__weighlock_done\n} 3>&2 2>/dev/null'
# A line means what is written in it, and not what was before it (`!!`).
declare -r __weighlock_last=$'{\n__weighlock_prompt\n} 3>&2 2>/dev/null\nset +H'
declare -r __weighlock_ps0='$({ __weighlock_output; } 2>/dev/null)'
declare -r __weighlock_ps1='\[${__weighlock_input-}\]'

# Before the user's prompt commands: the command has ended.
__weighlock_done() {
    local code=$? -
    set +x
    builtin printf '\e]133;D;%s;wl=%s\a' "$code" "$__weighlock_nonce" >&3
    # From 5.1 on bash restores $? itself, and `set -e` would end it here.
    [[ ${BASH_VERSINFO[0]}${BASH_VERSINFO[1]} -ge 51 ]] || return "$code"
}

# After the user's prompt commands: the prompt begins.
__weighlock_prompt() {
    local -
    set -B +x
    __weighlock_mend
    __weighlock_input=$__weighlock_plain
    [[ -o emacs || -o vi ]] && __weighlock_input=$__weighlock_edits
    __weighlock_seen=$(HISTTIMEFORMAT= builtin history 1)
    __weighlock_encode "$PWD"
    builtin printf '\e]133;P;cwd=%s;wl=%s\a\e]133;A;wl=%s\a' \
        "$__weighlock_text" "$__weighlock_nonce" "$__weighlock_nonce" >&3
    PS1=${PS1-} PS0=${PS0-}
    PS1=${PS1//"$__weighlock_ps1"/} PS0=${PS0//"$__weighlock_ps0"/}
    # Without promptvars they would be shown as they are written.
    if shopt -q promptvars; then
        PS1+=$__weighlock_ps1 PS0+=$__weighlock_ps0
    fi
    # A shell started from here has no use for them.
    export -n PS0 PROMPT_COMMAND __weighlock_input
}

# Before the command runs, in a subshell.
__weighlock_output() {
    set -B +eux
    local LC_ALL=C entry pattern='^ *[0-9]+[ *] (.*)$' key=cmd
    entry=$(HISTTIMEFORMAT= builtin history 1)
    # The newest is an older command when this one is not remembered.
    if [[ $entry != "$__weighlock_seen" && $entry =~ $pattern ]]; then
        entry=${BASH_REMATCH[1]}
        # So that a mark stays within what its reader holds.
        [[ ${#entry} -gt 4096 ]] && key=head entry=${entry:0:4096}
        __weighlock_encode "$entry"
        builtin printf '\e]133;C;%s=%s;wl=%s\a' "$key" "$__weighlock_text" "$__weighlock_nonce"
    else
        builtin printf '\e]133;C;wl=%s\a' "$__weighlock_nonce"
    fi
}

# Leaves its argument in __weighlock_text, without control characters and `;`.
__weighlock_encode() {
    local code char
    __weighlock_text=$1
    [[ $1 == *[%\;[:cntrl:]]* ]] || return 0
    __weighlock_text=${__weighlock_text//\%/%25}
    __weighlock_text=${__weighlock_text//\;/%3B}
    [[ $1 == *[[:cntrl:]]* ]] || return 0
    for code in {0,1}{{1..9},{A..F}} 10 7F; do
        builtin printf -v char "\\x$code"
        __weighlock_text=${__weighlock_text//"$char"/%$code}
    done
}

# Puts our prompt commands around the user's, at first and whenever the user
# has changed them.
__weighlock_mend() {
    local each kept=() after=()
    if [[ ${BASH_VERSINFO[0]}${BASH_VERSINFO[1]} -lt 51 ]]; then
        [[ ${PROMPT_COMMAND-} == *__weighlock_done*__weighlock_prompt* ]] && return 0
        PROMPT_COMMAND="__weighlock_done 3>&2 2>/dev/null && :
${PROMPT_COMMAND-}
$__weighlock_last"
        return 0
    fi
    for each in "${PROMPT_COMMAND[@]}"; do
        # `:` and not nothing, as the user's may be joined to it by a `;`.
        each=${each//"$__weighlock_first"/:}
        each=${each//"$__weighlock_last"/:}
        case $each in
            : | '') ;;
            # bash-preexec only works when this is the very last.
            __bp_interactive_mode) after=("$each") ;;
            *) kept+=("$each") ;;
        esac
    done
    PROMPT_COMMAND=("$__weighlock_first" "${kept[@]}" "$__weighlock_last" "${after[@]}")
}

if [[ -r ~/.bashrc ]]; then
    . ~/.bashrc
fi
set +H
# On a terminal that it thinks is dumb, readline does not know pastes.
bind -m emacs '"\e[200~": bracketed-paste-begin' 2>/dev/null
bind -m vi-insert '"\e[200~": bracketed-paste-begin' 2>/dev/null
__weighlock_mend
