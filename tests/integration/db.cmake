# The stores, ingest and sealing against a real PostgreSQL: PERFRIG_TEST_DATABASE is the connection string of a server
# where databases may be made.
file(GLOB integration_db_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/integration/db/*.cpp)
add_executable(integration_db ${integration_db_sources})
target_link_libraries(integration_db PRIVATE perfrig_controller_ingest perfrig_controller_queue perfrig_test_main)
set_target_properties(integration_db PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/integration)
