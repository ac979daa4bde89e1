# Tells the terminal's owner where prompts, commands and outputs begin and end.
# Read by zsh instead of ~/.zshenv. The user's own directory is put back at
# once, so zsh finds every other start-up file by itself.

if (( ${+WEIGHLOCK_ZDOTDIR} )); then
    export ZDOTDIR=$WEIGHLOCK_ZDOTDIR
    unset WEIGHLOCK_ZDOTDIR
else
    unset ZDOTDIR
fi

# Zsh has this file open; no program shall read it after.
command rm -f -- @FILE@ 2>/dev/null

typeset -g +x __weighlock_nonce=@NONCE@
typeset -g +x __weighlock_text=
typeset -gr __weighlock_nonce

# Tracing (`set -x`) stays silent; marks go where errors go.
__weighlock_precmd() {
    {
        local code=$? edits=
        [[ -o zle ]] && edits='edits;'
        emulate -L zsh
        # Zsh marks a missing last newline before it calls us; then the end of the
        # output is told there, and this is only for those who switched that off.
        builtin printf '\e]133;D;%s;wl=%s\a' $code $__weighlock_nonce >&3
        local done=$'%{\e]133;D;%?;wl='$__weighlock_nonce$'\a%}'
        local input=$'%{\e]133;B;'$edits'wl='$__weighlock_nonce$'\a%}'
        PROMPT_EOL_MARK=$done${${PROMPT_EOL_MARK-%B%S%#%s%b}//$done/}
        PS1=${PS1//$'%{\e]133;B;'(edits;|)'wl='$__weighlock_nonce$'\a%}'/}$input
        # Users do export their prompt; no program shall find the nonce in it.
        typeset -g +x PS1 PROMPT_EOL_MARK
        # Output begins after the user's own preexec functions.
        preexec_functions=(${preexec_functions:#__weighlock_preexec} __weighlock_preexec)
        __weighlock_encode $PWD
        builtin printf '\e]133;P;cwd=%s;wl=%s\a\e]133;A;wl=%s\a' \
            $__weighlock_text $__weighlock_nonce $__weighlock_nonce >&3
    } 3>&2 2>/dev/null
}

__weighlock_preexec() {
    {
        emulate -L zsh
        unsetopt multibyte
        local text=${1:-$3} key=cmd
        # So that a mark stays within what its reader holds.
        (( $#text > 4096 )) && key=head text=$text[1,4096]
        __weighlock_encode $text
        builtin printf '\e]133;C;%s=%s;wl=%s\a' $key "$__weighlock_text" $__weighlock_nonce >&3
    } 3>&2 2>/dev/null
}

# Leaves its argument in __weighlock_text, without control characters and `;`.
__weighlock_encode() {
    local code char
    typeset -g __weighlock_text=$1
    [[ $1 == *[%\;[:cntrl:]]* ]] || return 0
    __weighlock_text=${__weighlock_text//\%/%25}
    __weighlock_text=${__weighlock_text//\;/%3B}
    [[ $1 == *[[:cntrl:]]* ]] || return 0
    for code in {0,1}{{0..9},{A..F}} 7F; do
        builtin printf -v char "\\x$code"
        __weighlock_text=${__weighlock_text//$char/%$code}
    done
}

# A line means what is written in it, and not what was before it (`!!`); and
# what other shells would read: `#` begins a comment, and a redirection alone
# runs nothing. In a function of its own, as those that emulate put options back.
__weighlock_options() {
    typeset -g histchars='!^#'
    setopt no_bang_hist interactive_comments sh_nullcmd
}

typeset -ga precmd_functions
precmd_functions+=(__weighlock_options __weighlock_precmd)

if [[ -r ${ZDOTDIR:-$HOME}/.zshenv ]]; then
    . "${ZDOTDIR:-$HOME}/.zshenv"
fi
