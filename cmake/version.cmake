# Run at every build: writes the commit into a header, and touches it only when the commit changed.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --dirty --abbrev=10
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
endif()
set(text "#pragma once\n#define TINYVLLM_VERSION \"${VERSION}\"\n#define TINYVLLM_COMMIT \"${commit}\"\n")
set(old "")
if(EXISTS ${HEADER})
  file(READ ${HEADER} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${HEADER} ${text})
endif()
