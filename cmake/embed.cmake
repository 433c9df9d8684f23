# assay_embed(OUT HEADER PREFIX FILE...): a C file OUT with the bytes of each FILE as a `struct
# base_string` that HEADER declares: of page.css, PREFIX_page_css. It is made again when a file
# changes.
function(assay_embed out header prefix)
  set(code "#include \"${header}\"\n")
  foreach(file IN LISTS ARGN)
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} name)
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "(..)" "\\\\x\\1" escaped "${hex}")
    string(REGEX REPLACE "((\\\\x..)(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?)" "\n    \"\\1\"" lines "${escaped}")
    string(APPEND code "\nstatic const char ${name}[] ={TEXT};\n"
      "const struct base_string ${prefix}_${name} = {${name}, sizeof ${name} - 1};\n")
    string(REPLACE "{TEXT}" "${lines}" code "${code}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(CONFIGURE OUTPUT ${out} CONTENT "${code}" @ONLY)
endfunction()
