# Switches of the build, and the compile options that every target shares.

option(ASSAY_TESTS "Build the tests (needs cmocka)" ON)
option(ASSAY_BENCH "Build the benchmarks, on x86-64" ON)
option(ASSAY_WERROR "Treat warnings as errors" OFF)
option(ASSAY_PORTABLE "Take base/system/posix.c instead of linux.c" OFF)
option(ASSAY_COVERAGE "Instrument for gcov" OFF)
option(ASSAY_FUZZ "Build libFuzzer targets (needs clang)" OFF)
# Whether kernels for AVX2, AVX-512 and AMX are compiled; aarch64 has others (kernels/cpu/).
string(COMPARE EQUAL "${CMAKE_SYSTEM_PROCESSOR}" "x86_64" ASSAY_X86)
if(NOT ASSAY_X86)
  set(ASSAY_BENCH OFF) # they compare with what AVX2 and AVX-512 can do
endif()
set(ASSAY_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(assay_options INTERFACE)
target_include_directories(assay_options INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(assay_options INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
# Contraction is off everywhere: a fused multiply-add happens where the source
# says fma, and nowhere else, so that every variant of a kernel has the same bits.
target_compile_options(assay_options INTERFACE
  -ffp-contract=off -fno-strict-aliasing
  -Wall -Wextra -Wshadow -Wpointer-arith -Wcast-qual -Wstrict-prototypes
  -Wno-missing-field-initializers # C fills what a list of options leaves out with zeros
  -Wmissing-prototypes -Wvla -Wwrite-strings -Wformat=2 -Wundef -Wdouble-promotion)
if(ASSAY_WERROR)
  target_compile_options(assay_options INTERFACE -Werror)
endif()
string(COMPARE NOTEQUAL "${ASSAY_SANITIZE}" "" sanitized)
target_compile_definitions(assay_options INTERFACE ASSAY_SANITIZED=$<BOOL:${sanitized}>)
if(ASSAY_SANITIZE)
  target_compile_options(assay_options INTERFACE
    -fsanitize=${ASSAY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(assay_options INTERFACE -fsanitize=${ASSAY_SANITIZE})
endif()
include(cmake/hardening.cmake)
target_compile_options(assay_options INTERFACE ${ASSAY_HARDENED_COMPILE})
target_link_options(assay_options INTERFACE ${ASSAY_HARDENED_LINK})
if(ASSAY_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "ASSAY_FUZZ needs clang: configure with the preset `asan-ubsan`")
  endif()
endif()
if(ASSAY_COVERAGE)
  target_compile_options(assay_options INTERFACE --coverage -O0)
  target_link_options(assay_options INTERFACE --coverage)
endif()

# At -O3, gcc 12.2 for aarch64 ends with an internal error in vect_transform_reduction.
set(ASSAY_NO_VECTORS)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64" AND CMAKE_C_COMPILER_ID STREQUAL "GNU"
    AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13)
  set(ASSAY_NO_VECTORS -fno-tree-vectorize)
endif()

# assay_layer(NAME SOURCES... ): the static library of one layer.
function(assay_layer name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC assay_options)
  if(ASSAY_FUZZ AND NOT name STREQUAL assay_kernels) # these count arithmetic, not forms of input
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-fsanitize=fuzzer-no-link>)
  endif()
  if(NOT name STREQUAL assay_kernels)
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:${ASSAY_NO_VECTORS}>)
  endif()
  if(NOT ASSAY_SANITIZE AND NOT ASSAY_COVERAGE) # they make frames larger
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-Wframe-larger-than=16384>)
  endif()
endfunction()
