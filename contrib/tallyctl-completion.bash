# SPDX-License-Identifier: BSD-3-Clause
# Completion of tallyctl for bash. It asks the program itself what there is, so
# it fits whichever version is called.

_tallyctl()
{
    local program=$1 word=$2 command="" i
    local IFS=$' \t\n'
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case ${COMP_WORDS[i]} in
        -*) ;;
        *)
            command=${COMP_WORDS[i]}
            break
            ;;
        esac
    done
    if [[ -z $command || $command == help ]]; then
        # "  NAME   text"
        COMPREPLY=($(compgen -W "help $("$program" help 2>/dev/null |
            sed -n 's/^  \([a-z]*\) .*/\1/p')" -- "$word"))
        return
    fi
    if [[ $word == -* ]]; then
        # "  --NAME" or "  --NAME=ARGUMENT"
        COMPREPLY=($(compgen -W "$("$program" "$command" --help 2>/dev/null |
            sed -n 's/^  \(--[a-z-]*=\{0,1\}\).*/\1/p')" -- "$word"))
        [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] &&
            compopt -o nospace 2>/dev/null
        return
    fi
    # words of a command, as "usage: tallyctl schema show" has them
    COMPREPLY=($(compgen -W "$("$program" "$command" --help 2>/dev/null |
        sed -n "s/^.*tallyctl $command \([a-z][a-z]*\) .*/\1/p")" -- "$word"))
    [[ ${#COMPREPLY[@]} -gt 0 ]] || compopt -o default 2>/dev/null
}
complete -F _tallyctl tallyctl
