# Completion of assay for bash: the program itself says what can follow, from its lists of options.

_assay() {
    local word rest current=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS=$'\t' read -r word rest; do
        if [[ $word == :file ]]; then
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        else
            COMPREPLY+=("$word")
        fi
    done < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}

complete -F _assay assay
