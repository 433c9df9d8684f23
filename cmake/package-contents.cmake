# What goes into which package; CPack reads this once for each.

set(components portable documents)
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
