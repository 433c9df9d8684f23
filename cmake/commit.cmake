# Writes the C file that names the commit of the source, where that is another than it names already.
# usage: cmake -DSOURCE=FOLDER -DOUT=FILE -P commit.cmake
cmake_minimum_required(VERSION 3.25)

# In an archive that git made of a commit, the hash stands here. A checkout is asked.
string(REGEX MATCH "^[0-9a-f]+$" commit [[$Format:%H$]])
string(SUBSTRING "${commit}" 0 12 commit)
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=*
    WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT "#include \"cli/process/version.h\"

const char cli_commit[] = \"${commit}\";
")
