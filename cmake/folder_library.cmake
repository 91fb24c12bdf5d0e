# One static library per folder of src/. The library exposes its own include root and nothing else:
# build/include/io/io is a link to src/io, so `#include "io/gguf.h"` compiles only where io is used.
#
#   folder_library(io USES base telemetry LIBS PkgConfig::SIMDJSON)
function(folder_library folder)
  cmake_parse_arguments(ARG "" "" "USES;LIBS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cc)
  # Files under a cpu/isa folder are compiled once per instruction set by their own rule.
  list(FILTER sources EXCLUDE REGEX "/cpu/isa/")

  set(root ${CMAKE_BINARY_DIR}/include/${folder})
  file(MAKE_DIRECTORY ${root})
  file(CREATE_LINK ${dir} ${root}/${folder} SYMBOLIC)

  if(sources)
    add_library(${folder} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(${folder} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${folder} ${scope} ${root})
  target_link_libraries(${folder} ${scope} ${ARG_USES})
  if(ARG_LIBS AND sources)
    target_link_libraries(${folder} PRIVATE ${ARG_LIBS})
  endif()
endfunction()
