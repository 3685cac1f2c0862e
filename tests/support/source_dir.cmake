# Where the sources lie, for the unit tests that hold code against files of the repository.
if(TARGET unit_common_experiment)
  target_compile_definitions(unit_common_experiment PRIVATE PERFRIG_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
endif()
