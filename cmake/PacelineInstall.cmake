# SPDX-License-Identifier: Apache-2.0
# `cmake --install` gives a prefix that runs from anywhere: programs look for the recorder in ../lib/paceline beside them.
# Its components are those of the packages (PacelinePackages.cmake): program, viewer, trainer, trainer_cuda, development.
include(CMakePackageConfigHelpers)

# Programs. They need no RPATH, except for a trainer that brings its oneDNN along.
install(TARGETS paceline RUNTIME DESTINATION bin COMPONENT program)
set_target_properties(paceline PROPERTIES INSTALL_RPATH "")
foreach(target paceline-inject paceline-nvtx paceline-cupti paceline-nccl)
  if(TARGET ${target})
    install(TARGETS ${target} LIBRARY DESTINATION lib/paceline COMPONENT program)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "")
  endif()
endforeach()
if(TARGET paceline-report-mpi)
  install(TARGETS paceline-report-mpi RUNTIME DESTINATION lib/paceline COMPONENT trainer)  # that package has MPI
  set_target_properties(paceline-report-mpi PROPERTIES INSTALL_RPATH "")
endif()
install(DIRECTORY profiler/pytorch/ DESTINATION lib/paceline/pytorch COMPONENT program FILES_MATCHING PATTERN "*.py"
        PATTERN "__pycache__" EXCLUDE)
# The documents and samples keep their places beside each other, for the links between them.
install(FILES README.md CHANGELOG.md CODE_OF_CONDUCT.md CONTRIBUTING.md LICENSE SECURITY.md DESTINATION share/doc/paceline
        COMPONENT program)
install(DIRECTORY docs samples DESTINATION share/doc/paceline COMPONENT program USE_SOURCE_PERMISSIONS
        PATTERN "docs*.sh" EXCLUDE PATTERN "docs-*" EXCLUDE PATTERN "make.sh" EXCLUDE PATTERN "__pycache__" EXCLUDE)
foreach(folder tests/bench tests/mutation)
  install(FILES ${folder}/README.md DESTINATION share/doc/paceline/${folder} COMPONENT program)
endforeach()
if(TARGET paceline-view)
  install(TARGETS paceline-view RUNTIME DESTINATION bin COMPONENT viewer)
  install(FILES viewer/desktop/paceline-view.desktop DESTINATION share/applications COMPONENT viewer)
  install(FILES viewer/desktop/paceline-view.svg DESTINATION share/icons/hicolor/scalable/apps COMPONENT viewer)
  install(FILES viewer/desktop/paceline.xml DESTINATION share/mime/packages COMPONENT viewer)
  set_target_properties(paceline-view PROPERTIES INSTALL_RPATH "")
endif()
if(TARGET paceline-train)
  install(TARGETS paceline-train RUNTIME DESTINATION bin COMPONENT trainer)
  cmake_path(IS_PREFIX DNNL_FROM_PYPI "${DNNL_LIBRARY}" unpacked)  # samples/setup.sh --onednn
  if(unpacked)
    install(FILES ${DNNL_FROM_PYPI}/lib/libdnnl.so.3 DESTINATION lib/paceline COMPONENT trainer)
    install(FILES ${DNNL_FROM_PYPI}/share/doc/onednn/LICENSE ${DNNL_FROM_PYPI}/share/doc/onednn/THIRD-PARTY-PROGRAMS
            DESTINATION share/doc/paceline-trainer/onednn COMPONENT trainer)
    set_target_properties(paceline-train PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/paceline")
  else()
    set_target_properties(paceline-train PROPERTIES INSTALL_RPATH "")
  endif()
endif()
if(TARGET paceline-train-cuda)
  install(TARGETS paceline-train-cuda LIBRARY DESTINATION lib COMPONENT trainer_cuda)
endif()

# The analysis as a library for other programs: find_package(Paceline), target Paceline::analysis.
set(library_targets paceline_analysis paceline_format paceline_format_write paceline_foreign paceline_zstd)
foreach(target ${library_targets})
  string(REPLACE paceline_ "" name ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
endforeach()
target_compile_features(paceline_format PUBLIC cxx_std_20)
install(TARGETS ${library_targets} EXPORT PacelineTargets ARCHIVE DESTINATION lib COMPONENT development
        INCLUDES DESTINATION include/paceline)
install(EXPORT PacelineTargets NAMESPACE Paceline:: DESTINATION lib/cmake/Paceline COMPONENT development)
install(DIRECTORY analysis DESTINATION include/paceline COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN cli EXCLUDE PATTERN python EXCLUDE PATTERN renderings EXCLUDE)
install(DIRECTORY profiler/format DESTINATION include/paceline/profiler COMPONENT development FILES_MATCHING PATTERN "*.h")
configure_package_config_file(cmake/PacelineConfig.cmake.in ${CMAKE_BINARY_DIR}/PacelineConfig.cmake
                              INSTALL_DESTINATION lib/cmake/Paceline)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/PacelineConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/PacelineConfig.cmake ${CMAKE_BINARY_DIR}/PacelineConfigVersion.cmake
        DESTINATION lib/cmake/Paceline COMPONENT development)
