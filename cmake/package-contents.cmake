# What goes into which package, and what the .deb depends on; CPack reads this once for each package.

set(components portable mpi documents)
if(CPACK_GENERATOR STREQUAL "DEB")
  list(APPEND components debian)
else()
  list(APPEND components libraries)
endif()
list(GET CPACK_INSTALL_CMAKE_PROJECTS 0 build)
set(CPACK_INSTALL_CMAKE_PROJECTS)
foreach(component IN LISTS components)
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS ${build} assay ${component} /)
endforeach()

# CPack would ask for the libraries for MPI, too, which nobody needs without mpirun.
if(CPACK_GENERATOR STREQUAL "DEB" AND CPACK_ASSAY_SHLIBDEPS)
  set(folder ${CPACK_PACKAGE_DIRECTORY}/_CPack_Packages/shlibdeps)
  file(WRITE ${folder}/debian/control "") # the tool expects to be in a source package
  execute_process(COMMAND ${CPACK_ASSAY_SHLIBDEPS} WORKING_DIRECTORY ${folder}
    OUTPUT_VARIABLE depends OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_VARIABLE said)
  if(failed)
    message(FATAL_ERROR "${said}")
  endif()
  string(REPLACE "shlibs:Depends=" "" CPACK_DEBIAN_PACKAGE_DEPENDS "${depends}")
endif()
if(CPACK_GENERATOR STREQUAL "DEB" AND CPACK_ASSAY_DEPENDS)
  # The C library is as new as the newest of its symbols that the program has.
  file(STRINGS ${CPACK_ASSAY_PROGRAM} versions REGEX "^GLIBC_2\\.[0-9]+$")
  list(SORT versions COMPARE NATURAL ORDER DESCENDING)
  list(GET versions 0 newest)
  string(REPLACE "GLIBC_" "" newest ${newest})
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= ${newest}), ${CPACK_ASSAY_DEPENDS}")
endif()
