# bench_collect: what sampling threads costs, against pidstat.
add_executable(bench_collect ${CMAKE_SOURCE_DIR}/tests/bench/collect.cpp)
target_link_libraries(bench_collect PRIVATE perfrig_agent_collectors perfrig_agent_helper perfrig_common_protocol)
