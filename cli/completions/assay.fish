# Completion of assay for fish: the program itself says what can follow, from its lists of options.

function __assay_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -a words "$current"
    for line in ($words[1] complete $words[2..-1] 2>/dev/null)
        if test "$line" = :file
            __fish_complete_path "$current"
        else
            echo $line
        end
    end
end

complete -c assay -f -a '(__assay_complete)'
