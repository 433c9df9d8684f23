# Put the shared libraries that `program` needs, but for the C library's own, into lib/assay of
# a package, and beside each what its distributor says of its licence. Those of another architecture
# are in `sysroot`; this machine's dpkg knows its own packages of the same names.

set(folders)
if(sysroot)
  file(GLOB folders ${sysroot}/usr/lib/*-linux-gnu ${sysroot}/lib/*-linux-gnu)
endif()
file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${program} DIRECTORIES ${folders}
     RESOLVED_DEPENDENCIES_VAR libraries
     POST_EXCLUDE_REGEXES "/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\\.so\\.[0-9]+$")
set(folder "${CMAKE_INSTALL_PREFIX}/lib/assay")
find_program(DPKG_QUERY dpkg-query)
foreach(library IN LISTS libraries)
  file(REAL_PATH ${library} real)
  get_filename_component(name ${library} NAME)
  file(INSTALL ${real} DESTINATION ${folder} RENAME ${name})
  set(licence)
  if(DPKG_QUERY)
    set(known ${real})
    if(sysroot)
      set(known "*/${name}")
    endif()
    execute_process(COMMAND ${DPKG_QUERY} -S ${known} OUTPUT_VARIABLE owner ERROR_QUIET)
    string(REGEX REPLACE ":.*" "" owner "${owner}")
    set(licence ${sysroot}/usr/share/doc/${owner}/copyright)
  endif()
  if(licence AND EXISTS ${licence})
    file(INSTALL ${licence} DESTINATION ${folder} RENAME ${name}.copyright)
    # Debian's texts refer to common licences by their paths.
    file(STRINGS ${licence} lines REGEX "/usr/share/common-licenses/")
    string(REGEX MATCHALL "/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]" common "${lines}")
    foreach(text IN LISTS common)
      file(INSTALL ${text} DESTINATION ${folder} FOLLOW_SYMLINK_CHAIN)
    endforeach()
  else()
    message(WARNING "no licence found for ${real}: put it into the package by hand")
  endif()
endforeach()
