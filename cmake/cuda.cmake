# The CUDA backend: built when there is an nvcc that works. Kernels lie in folders named cuda/, and
# what stands in for them elsewhere in folders named no_cuda/. The runtime is linked statically and
# loads the driver by itself, so one binary serves machines with a card and without.
set(TINYVLLM_CUDA AUTO CACHE STRING "CUDA backend: AUTO (when nvcc works), ON or OFF")
set(TINYVLLM_CUDA_ARCHITECTURES 90a CACHE STRING "Cards to compile for")

# Words for what keeps CUDA from being built, or none. Asked of a project of its own, since a compiler
# that does not work would end the configuration of this one.
function(find_cuda_trouble result)
  set(${result} "" PARENT_SCOPE)
  find_program(NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
  if(NOT NVCC)
    set(${result} "nvcc was not found: set CUDA_PATH" PARENT_SCOPE)
    return()
  endif()
  set(wanted "${NVCC} for ${TINYVLLM_CUDA_ARCHITECTURES}")
  if(TINYVLLM_CUDA_WORKS STREQUAL wanted)
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/CMakeFiles/check_cuda)
  file(REMOVE_RECURSE ${folder})
  file(MAKE_DIRECTORY ${folder})
  execute_process(
    COMMAND ${CMAKE_COMMAND} -S ${CMAKE_SOURCE_DIR}/cmake/check_cuda -B ${folder} -G ${CMAKE_GENERATOR}
            -DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM} -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
            -DCMAKE_CUDA_COMPILER=${NVCC} "-DCMAKE_CUDA_ARCHITECTURES=${TINYVLLM_CUDA_ARCHITECTURES}"
    RESULT_VARIABLE status OUTPUT_FILE ${folder}/log.txt ERROR_FILE ${folder}/log.txt)
  if(status EQUAL 0)
    set(TINYVLLM_CUDA_WORKS "${wanted}" CACHE INTERNAL "an nvcc that was seen to work")
  else()
    set(${result} "${wanted} does not work: ${folder}/log.txt says why" PARENT_SCOPE)
  endif()
endfunction()

set(TINYVLLM_HAS_CUDA OFF)
if(NOT TINYVLLM_CUDA STREQUAL OFF)
  find_cuda_trouble(trouble)
  if(NOT trouble)
    set(CMAKE_CUDA_COMPILER ${NVCC})
    set(CMAKE_CUDA_ARCHITECTURES ${TINYVLLM_CUDA_ARCHITECTURES})
    set(CMAKE_CUDA_STANDARD 17)  # the latest that CMake 3.25 knows of nvcc
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    if(CCACHE)
      set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(TINYVLLM_HAS_CUDA ON)
  elseif(TINYVLLM_CUDA STREQUAL ON)
    message(FATAL_ERROR "TINYVLLM_CUDA is ON, but ${trouble}; AUTO or OFF builds without it")
  elseif(NVCC)
    message(WARNING "building without CUDA, because ${trouble}")
  endif()
endif()
message(STATUS "CUDA backend: ${TINYVLLM_HAS_CUDA}")
