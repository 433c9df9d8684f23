# Libraries from outside; docs/dependencies.md says why each was chosen.

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8>=10.40)
pkg_check_modules(CRYPTO REQUIRED IMPORTED_TARGET libcrypto>=3.0)
pkg_check_modules(CJSON REQUIRED IMPORTED_TARGET libcjson>=1.7.15)

option(ASSAY_SERVE "Build assay serve, where libmicrohttpd is found" ON)
if(ASSAY_SERVE)
  pkg_check_modules(MICROHTTPD libmicrohttpd>=0.9.71)
else()
  set(MICROHTTPD_FOUND FALSE) # whatever an earlier run has left in the cache
endif()

option(ASSAY_CURL "Build check --url and kld --base-url, where libcurl is found" ON)
if(ASSAY_CURL)
  pkg_check_modules(CURL libcurl>=7.66)
else()
  set(CURL_FOUND FALSE)
endif()

if(ASSAY_TESTS)
  pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka>=1.1.5)
endif()
