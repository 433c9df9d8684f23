# The manual page, and one of each command, made from docs/assay.1 and the program's help. Where there
# is no Python to do it, docs/assay.1 is installed as it is: the prose, which names `assay help`.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND) # what is found may be a script that looks for the interpreter each time
  execute_process(COMMAND ${Python3_EXECUTABLE} -c "import sys; print(sys.executable)"
                  OUTPUT_VARIABLE Python3_EXECUTABLE OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  set(Python3_EXECUTABLE ${Python3_EXECUTABLE} CACHE FILEPATH "the Python of tests and pages")
endif()
if(Python3_FOUND AND NOT CMAKE_CROSSCOMPILING AND NOT ASSAY_SANITIZE AND NOT ASSAY_COVERAGE)
  set(pages ${PROJECT_BINARY_DIR}/man)
  set(script ${PROJECT_SOURCE_DIR}/scripts/make-man.py)
  file(MAKE_DIRECTORY ${pages})
  add_custom_command(OUTPUT ${pages}.stamp
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
    COMMAND ${Python3_EXECUTABLE} ${script} ${pages} $<TARGET_FILE:assay>
            ${PROJECT_SOURCE_DIR}/docs/assay.1
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}.stamp
    DEPENDS assay ${script} docs/assay.1 VERBATIM)
  add_custom_target(pages ALL DEPENDS ${pages}.stamp)
  install(DIRECTORY ${pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT documents)
else()
  install(FILES docs/assay.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT documents)
endif()
