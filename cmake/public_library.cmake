# What is installed: one shared library that shows what include/tinyvllm declares and nothing else of
# the house, its headers, the binary, and the package that find_package(tinyvllm) finds.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
add_library(libtinyvllm SHARED ${CMAKE_SOURCE_DIR}/src/public/engine.cc)
set_target_properties(libtinyvllm PROPERTIES OUTPUT_NAME tinyvllm EXPORT_NAME tinyvllm
                      VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_compile_features(libtinyvllm PUBLIC cxx_std_20)
target_include_directories(libtinyvllm INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(libtinyvllm PRIVATE engine)
target_link_options(libtinyvllm PRIVATE -Wl,--exclude-libs,ALL)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tinyvllm)
install(TARGETS libtinyvllm EXPORT tinyvllm)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/tinyvllm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT tinyvllm NAMESPACE tinyvllm:: FILE tinyvllmConfig.cmake DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tinyvllmConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tinyvllmConfigVersion.cmake DESTINATION ${package})
