# Packages: `cmake --build --preset release --target package` makes three .deb and a .tar.gz.
#
# Both kinds hold the same program and library (cmake/library.cmake). The program looks for its
# libraries in ../lib/assay first. The .tar.gz has them there, so it runs on any machine with a C
# library as new as the builder's; a .deb names them as dependencies.

target_link_options(assay PRIVATE -Wl,--as-needed
  $<$<LINK_LANGUAGE:CUDA>:-static-libgcc> $<$<LINK_LANGUAGE:CUDA>:-static-libstdc++>)
# The same path in the build tree: CMake would pad one that it replaces with empty elements, and an
# empty element is the folder that the program is called in. Libraries from outside the system's
# folders are found where they were linked.
set_target_properties(assay PROPERTIES INSTALL_RPATH "\$ORIGIN/../lib/assay"
  BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)

install(TARGETS assay RUNTIME DESTINATION bin COMPONENT portable EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION share/doc/assay RENAME copyright
        COMPONENT debian EXCLUDE_FROM_ALL)
install(CODE "set(program \"$<TARGET_FILE:assay>\")
set(sysroot \"${CMAKE_SYSROOT}\")"
        COMPONENT libraries EXCLUDE_FROM_ALL)
install(SCRIPT cmake/package-libraries.cmake COMPONENT libraries EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR TGZ)
find_program(ASSAY_DPKG dpkg)
if(ASSAY_DPKG)
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_PACKAGE_VENDOR "Seed 3f8b81f8")
set(CPACK_PACKAGE_CONTACT
    "Seed 3f8b81f8 maintainers <maintainers@users.noreply.a-seed-3f8b81f8.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "says what quantisation did to a language model")
set(CPACK_PACKAGE_DESCRIPTION
"assay reads a GGUF file and a text and evaluates the model: perplexity,
KL divergence from the model that it was made of, HellaSwag, Winogrande,
multiple choice and log-probabilities of given requests. Its results do
not depend on threads, batches or the instruction set.")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/package)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package-contents.cmake)

string(TOLOWER "assay-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}"
       CPACK_PACKAGE_FILE_NAME)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# What is loaded when it is asked for (docs/dependencies.md).
set(recommended)
if(MICROHTTPD_FOUND)
  list(APPEND recommended libmicrohttpd12)
endif()
if(CURL_FOUND)
  list(APPEND recommended libcurl4)
endif()
list(JOIN recommended ", " CPACK_DEBIAN_PACKAGE_RECOMMENDS)
get_property(suggested GLOBAL PROPERTY ASSAY_MPI_PACKAGES)
list(JOIN suggested " | " suggested)
list(PREPEND suggested libopenblas0)
list(JOIN suggested ", " CPACK_DEBIAN_PACKAGE_SUGGESTS)
find_program(ASSAY_SHLIBDEPS dpkg-shlibdeps)
if(CMAKE_CROSSCOMPILING) # the packages of the other architecture are not in dpkg's database
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_ASSAY_DEPENDS "libcjson1 (>= 1.7.15), libpcre2-8-0 (>= 10.40), libssl3 (>= 3.0.0)")
elseif(ASSAY_SHLIBDEPS)
  set(CPACK_ASSAY_SHLIBDEPS ${ASSAY_SHLIBDEPS} --ignore-missing-info -O)
elseif(ASSAY_DPKG)
  message(STATUS "dpkg-shlibdeps is missing: each .deb will name no dependencies")
endif()
include(CPack)
