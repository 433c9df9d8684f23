# A manual page of each command, made from the program's help and docs/assay.1, where there is
# Python to do it. docs/assay.1 has everything that they have.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND AND NOT CMAKE_CROSSCOMPILING AND NOT ASSAY_SANITIZE AND NOT ASSAY_COVERAGE)
  set(pages ${PROJECT_BINARY_DIR}/man)
  set(script ${PROJECT_SOURCE_DIR}/scripts/make-man.py)
  file(MAKE_DIRECTORY ${pages})
  add_custom_command(OUTPUT ${pages}.stamp
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
    COMMAND ${Python3_EXECUTABLE} ${script} --pages ${pages} $<TARGET_FILE:assay>
            ${PROJECT_SOURCE_DIR}/docs/assay.1
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}.stamp
    DEPENDS assay ${script} docs/assay.1 VERBATIM)
  add_custom_target(pages ALL DEPENDS ${pages}.stamp)
  install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT documents)
endif()
