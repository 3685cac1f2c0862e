# The fuzz targets (clang, preset fuzz). One line a target: perfrig_fuzz(NAME FOLDER...) builds tests/fuzz/NAME.cpp,
# which defines LLVMFuzzerTestOneInput, against the targets of those folders. tests/fuzz/run finds it by itself; seeds
# are the files of tests/fuzz/seeds/NAME/.
function(perfrig_fuzz name)
  perfrig_target_names(libraries ${ARGN})
  add_executable(fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/${name}.cpp)
  target_link_libraries(fuzz_${name} PRIVATE ${libraries})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/fuzz)
endfunction()

perfrig_fuzz(wrk_report agent/tools)
perfrig_fuzz(pgbench_report agent/tools)
perfrig_fuzz(perf_bench_report agent/tools)
perfrig_fuzz(command_output agent/tools)
perfrig_fuzz(tool_options agent/tools)
perfrig_fuzz(line_pattern common/base)
perfrig_fuzz(experiment common/experiment)
perfrig_fuzz(cpu_list common/base)
perfrig_fuzz(protocol common/protocol)
