# Switches of the build and the flags they stand for.
option(PERFRIG_TESTS "build the tests" ON)
option(PERFRIG_BENCH "build the benchmark programs" OFF)
option(PERFRIG_FUZZ "build the fuzz targets (clang only)" OFF)
option(PERFRIG_STATIC_AGENT "link perfrig-agent statically, so that the one file runs on any x86-64 Linux" OFF)
set(PERFRIG_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize= takes them")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror -fno-omit-frame-pointer)
# In GCC 12 coroutine frames of temporaries trip the first two, and adding strings the others, although the code is right.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(-Wno-maybe-uninitialized -Wno-mismatched-new-delete -Wno-restrict -Wno-array-bounds
                      -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(PERFRIG_SANITIZE)
  add_compile_options(-fsanitize=${PERFRIG_SANITIZE} -fno-sanitize-recover=all -g1 -O1)
  add_link_options(-fsanitize=${PERFRIG_SANITIZE})
  if(PERFRIG_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-Wno-tsan) # Asio's fences; TSan sees the atomics beside them
  endif()
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  option(PERFRIG_PRECOMPILE "compile the headers that everybody includes once" ON)
endif()
find_program(PERFRIG_CCACHE ccache)
if(PERFRIG_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache wants to be told before it caches a unit with a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_PCH_EXTSUM=true ${PERFRIG_CCACHE})
  if(PERFRIG_PRECOMPILE)
    add_compile_options(-fpch-preprocess)
  endif()
endif()
find_program(PERFRIG_LLD ld.lld)
if(PERFRIG_LLD)
  add_link_options(-fuse-ld=lld)
endif()
# Implicit conversions from JSON make Result<Json> ambiguous and hide type errors.
add_compile_definitions(JSON_USE_IMPLICIT_CONVERSIONS=0 BOOST_ALLOW_DEPRECATED_HEADERS)
