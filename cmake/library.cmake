# libassay.so and libassay.a: what clients/library/ makes of the core, as the program is made of it.
# Their symbols are those of libassay.map alone, so that no name of the core meets one of a user's.

set(map ${PROJECT_SOURCE_DIR}/clients/library/libassay.map)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${map})
file(STRINGS ${map} symbols REGEX "^ +assay_[a-z_]+;$")
list(TRANSFORM symbols REPLACE "[ ;]" "")

add_library(assay_shared SHARED $<TARGET_OBJECTS:assay_library>)
target_link_libraries(assay_shared PRIVATE assay_eval)
target_link_options(assay_shared PRIVATE
  -Wl,--version-script=${map} -Wl,--as-needed -Wl,--no-undefined
  $<$<LINK_LANGUAGE:CUDA>:-static-libgcc> $<$<LINK_LANGUAGE:CUDA>:-static-libstdc++>)
target_include_directories(assay_shared INTERFACE ${PROJECT_SOURCE_DIR}/include)
# Beside the program's libraries in a .tar.gz, as cmake/package.cmake has it for the program.
set_target_properties(assay_shared PROPERTIES
  OUTPUT_NAME assay VERSION ${PROJECT_VERSION} SOVERSION 0
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} LINK_DEPENDS ${map} LINKER_LANGUAGE C
  INSTALL_RPATH "\$ORIGIN/assay" BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH_USE_LINK_PATH ON)
if(ASSAY_HAVE_CUDA)
  set_target_properties(assay_shared PROPERTIES LINKER_LANGUAGE CUDA)
endif()

# One object of all that the functions need, with their names alone left global.
set(archives)
foreach(room base gguf safetensors kernels template model eval)
  list(APPEND archives $<TARGET_FILE:assay_${room}>)
endforeach()
set(ASSAY_STATIC_NEEDS pcre2-8 cjson crypto pthread dl m) # what a program of the archive links, too
if(ASSAY_HAVE_CUDA)
  list(APPEND archives $<TARGET_FILE:CUDA::cudart_static>)
  list(APPEND ASSAY_STATIC_NEEDS rt stdc++)
endif()
list(TRANSFORM ASSAY_STATIC_NEEDS PREPEND -l OUTPUT_VARIABLE assay_private)
list(JOIN assay_private " " assay_private)
list(TRANSFORM symbols PREPEND --keep-global-symbol= OUTPUT_VARIABLE kept)
list(TRANSFORM symbols PREPEND --undefined= OUTPUT_VARIABLE wanted)
set(archive ${PROJECT_BINARY_DIR}/libassay.a)
set(object ${PROJECT_BINARY_DIR}/libassay.o)
add_custom_command(OUTPUT ${archive}
  COMMAND ${CMAKE_LINKER} -r -o ${object} ${wanted} $<TARGET_FILE:assay_library>
          --start-group ${archives} --end-group
  COMMAND ${CMAKE_OBJCOPY} ${kept} ${object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
  COMMAND ${CMAKE_AR} rcs ${archive} ${object}
  COMMAND ${CMAKE_COMMAND} -E rm ${object}
  DEPENDS assay_library assay_eval ${map} VERBATIM)
add_custom_target(assay_static ALL DEPENDS ${archive})

# assay_install_library(KIND LIBDIR RUNTIME DEVELOPMENT MORE...): both, what finds them, and the
# header, as two components (empty: those of a plain install). pkg-config's and CMake's files name
# places relative to their own.
function(assay_install_library kind libdir runtime development)
  set(folder ${PROJECT_BINARY_DIR}/library/${kind})
  file(RELATIVE_PATH assay_up /prefix/${libdir}/pkgconfig /prefix)
  configure_file(cmake/assay.pc.in ${folder}/assay.pc @ONLY)
  configure_file(cmake/assayConfig.cmake.in ${folder}/assayConfig.cmake @ONLY)
  write_basic_package_version_file(${folder}/assayConfigVersion.cmake
    VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
  install(TARGETS assay_shared LIBRARY DESTINATION ${libdir} COMPONENT ${runtime}
          NAMELINK_COMPONENT ${development} ${ARGN})
  set(more COMPONENT ${development} ${ARGN})
  install(FILES include/assay.h DESTINATION include ${more})
  install(FILES ${archive} DESTINATION ${libdir} ${more})
  install(FILES ${folder}/assay.pc DESTINATION ${libdir}/pkgconfig ${more})
  install(FILES ${folder}/assayConfig.cmake ${folder}/assayConfigVersion.cmake
          DESTINATION ${libdir}/cmake/assay ${more})
endfunction()

include(CMakePackageConfigHelpers)
assay_install_library(plain ${CMAKE_INSTALL_LIBDIR} plain_library plain_development)
assay_install_library(portable lib portable_library portable_development EXCLUDE_FROM_ALL)
set(multiarch lib)
if(CMAKE_LIBRARY_ARCHITECTURE)
  set(multiarch lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()
assay_install_library(debian ${multiarch} library development EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION share/doc/libassay0 RENAME copyright COMPONENT library
        EXCLUDE_FROM_ALL)
install(FILES LICENSE DESTINATION share/doc/libassay-dev RENAME copyright COMPONENT development
        EXCLUDE_FROM_ALL)
