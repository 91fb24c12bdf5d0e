# Files under FOLDER/cpu/isa are compiled once per instruction set into the folder's library, each
# time in the namespace of that instruction set.
#
#   isa_sources(ops)
function(isa_sources folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/cpu/isa/*.cc)
  set(isas baseline)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND isas avx2)
    set(flags_avx2 -mavx2 -mfma -mf16c)
  endif()
  foreach(isa ${isas})
    add_library(${folder}_${isa} OBJECT ${sources})
    target_compile_definitions(${folder}_${isa} PRIVATE TINYVLLM_ISA=${isa})
    # Vectors wider than the baseline's registers never cross a call here, so their ABI is moot.
    target_compile_options(${folder}_${isa} PRIVATE ${flags_${isa}} -O3 -fno-math-errno -Wno-psabi)
    target_include_directories(${folder}_${isa} PRIVATE
                               $<TARGET_PROPERTY:${folder},INTERFACE_INCLUDE_DIRECTORIES>)
    target_sources(${folder} PRIVATE $<TARGET_OBJECTS:${folder}_${isa}>)
  endforeach()
endfunction()
