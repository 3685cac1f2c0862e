# Every library from outside, found once. deploy/packages names the distributions' packages.
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(PostgreSQL REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(prometheus-cpp REQUIRED CONFIG)

# Header-only on purpose: the distribution has no static archives of spdlog and fmt, and the agent is one file.
find_path(SPDLOG_INCLUDE_DIR spdlog/spdlog.h REQUIRED)
add_library(perfrig_spdlog INTERFACE)
target_include_directories(perfrig_spdlog SYSTEM INTERFACE ${SPDLOG_INCLUDE_DIR})
target_compile_definitions(perfrig_spdlog INTERFACE SPDLOG_HEADER_ONLY SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY)

# A program linked statically (property PERFRIG_STATIC, see perfrig_program) takes these two as archives; the others as
# shared libraries, since libpq brings the shared libcrypto along and one process must not hold two.
function(perfrig_either_way name shared archive)
  find_library(${name}_ARCHIVE ${archive})
  if(PERFRIG_STATIC_AGENT AND NOT ${name}_ARCHIVE)
    message(FATAL_ERROR "a static agent needs ${archive}: install it, or configure with -DPERFRIG_STATIC_AGENT=OFF")
  endif()
  add_library(${name} INTERFACE)
  target_include_directories(${name} SYSTEM INTERFACE $<TARGET_PROPERTY:${shared},INTERFACE_INCLUDE_DIRECTORIES>)
  target_link_libraries(${name} INTERFACE $<IF:$<BOOL:$<TARGET_PROPERTY:PERFRIG_STATIC>>,${${name}_ARCHIVE},${shared}>)
endfunction()
perfrig_either_way(perfrig_crypto OpenSSL::Crypto libcrypto.a)
perfrig_either_way(perfrig_yaml yaml-cpp libyaml-cpp.a)

# The plain structs of prometheus-cpp (MetricFamily and friends) are headers alone: what the agent needs.
# Its registry, counters and histograms are a shared library: what the controller links.
add_library(prometheus_model INTERFACE)
get_target_property(PROMETHEUS_INCLUDE_DIR prometheus-cpp::core INTERFACE_INCLUDE_DIRECTORIES)
target_include_directories(prometheus_model SYSTEM INTERFACE ${PROMETHEUS_INCLUDE_DIR})
add_library(prometheus_core ALIAS prometheus-cpp::core)

# Contracts with the outside are files in schemas/, embedded as bytes: `schemas/embedded.hpp`.
set(generated ${CMAKE_BINARY_DIR}/generated)
file(GLOB schema_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/schemas/*.json ${CMAKE_SOURCE_DIR}/schemas/*.yaml
     ${CMAKE_SOURCE_DIR}/schemas/migrations/*.sql)
add_custom_command(
  OUTPUT ${generated}/schemas/embedded.cpp
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR}/schemas -DOUT=${generated}/schemas/embedded.cpp
          -P ${CMAKE_SOURCE_DIR}/deploy/cmake/embed.cmake
  DEPENDS ${schema_files} ${CMAKE_SOURCE_DIR}/deploy/cmake/embed.cmake VERBATIM)
add_library(schemas STATIC ${generated}/schemas/embedded.cpp)
target_include_directories(schemas PUBLIC ${CMAKE_SOURCE_DIR})
