# What ends the program where an error in it would serve an attacker, in every build that people
# run (docs/dependencies.md). Sanitizers find more, and do not go together with it.
#
# ASSAY_HARDENED_COMPILE, ASSAY_HARDENED_LINK: the options of the compiler and of its linker.

set(ASSAY_HARDENED_COMPILE)
set(ASSAY_HARDENED_LINK)
if(ASSAY_SANITIZE OR ASSAY_COVERAGE OR ASSAY_FUZZ)
  return()
endif()

include(CheckPIESupported)
check_pie_supported(LANGUAGES C) # else CMake leaves it to the compiler
set(ASSAY_HARDENED_LINK -Wl,-z,relro,-z,now)
set(ASSAY_HARDENED_COMPILE -fstack-protector-strong)
if(ASSAY_X86)
  list(APPEND ASSAY_HARDENED_COMPILE -fcf-protection=full)
endif()

# It needs optimisation. A distribution's compiler may have it set already, and is left alone.
string(TOUPPER "CMAKE_C_FLAGS_${CMAKE_BUILD_TYPE}" of_type)
separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS} ${${of_type}}")
execute_process(COMMAND ${CMAKE_C_COMPILER} ${flags} -dM -E -x c /dev/null
  OUTPUT_VARIABLE macros ERROR_QUIET)
if(macros MATCHES "__OPTIMIZE__" AND NOT macros MATCHES "_FORTIFY_SOURCE")
  list(APPEND ASSAY_HARDENED_COMPILE -D_FORTIFY_SOURCE=3)
endif()
