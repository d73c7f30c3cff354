# SPDX-License-Identifier: BSD-3-Clause
# Completion of tallyd for bash: its options, as --help of the version that is
# called has them. What stands behind one is completed as a file's name.

_tallyd()
{
    local IFS=$' \t\n'
    COMPREPLY=()
    [[ $2 == -* ]] || return 0
    # "  -X, --NAME", "      --NAME=ARGUMENT", "      --NAME[=ARGUMENT]"
    COMPREPLY=($(compgen -W "$("$1" --help 2>/dev/null |
        sed -n 's/^  \(-., \|    \)\(--[a-z-]*=\{0,1\}\).*/\2/p')" -- "$2"))
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] &&
        compopt -o nospace 2>/dev/null
    return 0
}
complete -o default -F _tallyd tallyd
