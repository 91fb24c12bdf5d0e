# The CUDA backend: built when nvcc is found. Kernels lie in folders named cuda/, and what stands in
# for them elsewhere in folders named no_cuda/. The runtime is linked statically and loads the driver
# by itself, so one binary serves machines with a card and without.
set(TINYVLLM_CUDA AUTO CACHE STRING "CUDA backend: AUTO (when nvcc is found), ON or OFF")
set(TINYVLLM_CUDA_ARCHITECTURES 90a CACHE STRING "Cards to compile for")
set(TINYVLLM_HAS_CUDA OFF)
if(NOT TINYVLLM_CUDA STREQUAL OFF)
  find_program(NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
  if(NVCC)
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
    message(FATAL_ERROR "TINYVLLM_CUDA is ON, but nvcc was not found: set CUDA_PATH, or leave it AUTO")
  endif()
endif()
message(STATUS "CUDA backend: ${TINYVLLM_HAS_CUDA}")
