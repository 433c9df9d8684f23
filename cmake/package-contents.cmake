# What goes into which package, and what each .deb depends on; CPack reads this once for each kind.

list(GET CPACK_INSTALL_CMAKE_PROJECTS 0 build)
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_INSTALL_CMAKE_PROJECTS)
  foreach(component portable mpi documents libraries portable_library portable_development)
    list(APPEND CPACK_INSTALL_CMAKE_PROJECTS ${build} assay ${component} /)
  endforeach()
  return()
endif()

# Three packages: of the program, of the library, and for those who compile with it.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENTS_ALL portable mpi documents debian library development)
foreach(component PORTABLE MPI DOCUMENTS DEBIAN)
  set(CPACK_COMPONENT_${component}_GROUP assay)
endforeach()
set(CPACK_COMPONENT_LIBRARY_GROUP library)
set(CPACK_COMPONENT_DEVELOPMENT_GROUP development)
set(CPACK_DEBIAN_ASSAY_PACKAGE_NAME assay)
set(CPACK_DEBIAN_ASSAY_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION_SUMMARY}\n${CPACK_PACKAGE_DESCRIPTION}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libassay0)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "the exact model of a GGUF file, as a library
Log-probabilities, hidden states, decoded tensors and products, for tests of
other programs' numbers: the same bits as the program assay.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libassay-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libassay0 (= ${CPACK_PACKAGE_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SUGGESTS "libpcre2-dev, libcjson-dev, libssl-dev")
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "the exact model of a GGUF file: header and static library
The header assay.h, and what finds it: pkg-config and CMake.")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY) # it would begin each of these
foreach(field RECOMMENDS SUGGESTS)
  set(CPACK_DEBIAN_ASSAY_PACKAGE_${field} "${CPACK_DEBIAN_PACKAGE_${field}}")
  set(CPACK_DEBIAN_PACKAGE_${field})
endforeach()

# CPack would ask for the libraries for MPI, too, which nobody needs without mpirun.
function(assay_depends package file)
  if(CPACK_ASSAY_SHLIBDEPS)
    set(folder ${CPACK_PACKAGE_DIRECTORY}/_CPack_Packages/shlibdeps)
    file(WRITE ${folder}/debian/control "") # the tool expects to be in a source package
    execute_process(COMMAND ${CPACK_ASSAY_SHLIBDEPS} ${file} WORKING_DIRECTORY ${folder}
      OUTPUT_VARIABLE depends OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_VARIABLE said)
    if(failed)
      message(FATAL_ERROR "${said}")
    endif()
    string(REPLACE "shlibs:Depends=" "" depends "${depends}")
  elseif(CPACK_ASSAY_DEPENDS)
    # The C library is as new as the newest of its symbols that the file has.
    file(STRINGS ${file} versions REGEX "^GLIBC_2\\.[0-9]+$")
    list(SORT versions COMPARE NATURAL ORDER DESCENDING)
    list(GET versions 0 newest)
    string(REPLACE "GLIBC_" "" newest ${newest})
    set(depends "libc6 (>= ${newest}), ${CPACK_ASSAY_DEPENDS}")
  endif()
  set(CPACK_DEBIAN_${package}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
endfunction()
assay_depends(ASSAY ${build}/assay)
assay_depends(LIBRARY ${build}/libassay.so)
