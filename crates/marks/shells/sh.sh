# Tells the terminal's owner where prompts begin and end, and how commands
# ended. A plain shell has no place to tell where output begins.

rm -f -- @FILE@ 2>/dev/null
# Only for this shell, not for those started from it.
unset ENV

__weighlock_nonce=@NONCE@
__weighlock_input=$(printf '\033]133;B;quiet;wl=%s\007' "$__weighlock_nonce")
# For the rest of a command.
__weighlock_more=$(printf '\033]133;B;more;wl=%s\007' "$__weighlock_nonce")

# Before the prompt, in a subshell.
__weighlock_prompt() {
    printf '\033]133;D;%s;wl=%s\007\033]133;P;cwd=%s;wl=%s\007\033]133;A;wl=%s\007' \
        "$1" "$__weighlock_nonce" "$(__weighlock_encode "$PWD")" \
        "$__weighlock_nonce" "$__weighlock_nonce"
}

__weighlock_encode() {
    case $1 in
        *[%\;[:cntrl:]]*) printf %s "$1" | od -An -v -tx1 | tr -d '\n' | tr ' ' % ;;
        *) printf %s "$1" ;;
    esac
}

# A bash that is called sh counts the columns of its prompt.
if [ -n "${BASH_VERSION-}" ]; then
    PS1='\[$({ __weighlock_prompt "$?"; } 2>/dev/null)\]'${PS1-}'\[${__weighlock_input-}\]'
    PS2=${PS2-}'\[${__weighlock_more-}\]'
else
    PS1='$({ __weighlock_prompt "$?"; } 2>/dev/null)'${PS1-}'${__weighlock_input-}'
    PS2=${PS2-}'${__weighlock_more-}'
fi
