# Toolchain: compile for aarch64 Linux on another machine, with Debian's gcc-aarch64-linux-gnu and
# the arm64 packages that scripts/deps.sh aarch64 unpacks; -DCMAKE_SYSROOT=FOLDER names others.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(unpacked ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot-aarch64)
if(NOT CMAKE_SYSROOT AND EXISTS ${unpacked})
  get_filename_component(CMAKE_SYSROOT ${unpacked} ABSOLUTE)
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${CMAKE_SYSROOT}/")
set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
