# SPDX-License-Identifier: Apache-2.0
# Packages for Debian: `cmake --workflow --preset packages`, or `cpack` in a build directory. Each component of the
# installation is a package, except training on GPUs, whose libraries Debian does not have.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME paceline)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program viewer trainer development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(PACELINE_MAINTAINER "Paceline developers <paceline@localhost.localdomain>" CACHE STRING
    "Maintainer of the Debian packages: NAME <ADDRESS>")
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${PACELINE_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib ${DNNL_FROM_PYPI}/lib)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)

# paceline_package(COMPONENT NAME DEPENDS SUMMARY DESCRIPTION): dpkg-shlibdeps adds the libraries to DEPENDS.
macro(paceline_package component name depends summary description)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${description}")
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${description}")
  install(FILES ${CMAKE_BINARY_DIR}/debian/changelog.Debian.gz DESTINATION share/doc/${name} COMPONENT ${component})
  install(FILES cmake/debian/${name}.copyright DESTINATION share/doc/${name} RENAME copyright COMPONENT ${component})
endmacro()
set(same_version "paceline (= ${PROJECT_VERSION}-1)")
paceline_package(program paceline ""
  "performance analysis of data-parallel training jobs"
  "Records MPI and PyTorch jobs, one small trace file for each rank, puts all
ranks on one clock, and shows where the time goes, which rank the others wait
for, and whether more ranks would help. The recorder is part of this package.")
paceline_package(viewer paceline-viewer "${same_version}, qt6-qpa-plugins, fonts-dejavu-core"
  "timeline of data-parallel training jobs"
  "Shows the traces of Paceline and of other profilers on a timeline, all ranks
on one clock.")
paceline_package(trainer paceline-trainer "${same_version}, openmpi-bin"
  "reference trainer for data-parallel training"
  "Trains ResNet and VGG networks on CPUs, data-parallel over MPI, with the
techniques of large-batch training. It is the job that Paceline is proved on.")
paceline_package(development libpaceline-dev
  "g++, libsimdjson-dev, libsqlite3-dev, zlib1g-dev, libarchive-dev, libopen-trace-format2-dev, libzstd-dev, libxxhash-dev, libfmt-dev, nlohmann-json3-dev, pkg-config"
  "performance analysis of data-parallel training jobs: library"
  "The readers of traces and the analysis of Paceline as a static C++ library,
with its headers and a CMake package.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
foreach(part VIEWER TRAINER)
  if(NOT PACELINE_HAVE_${part})
    string(TOLOWER ${part} component)
    list(REMOVE_ITEM CPACK_COMPONENTS_ALL ${component})
  endif()
endforeach()

# Debian's form of the changelog: the version and where to read on.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/debian/changelog.Debian @ONLY NEWLINE_STYLE UNIX CONTENT
"paceline (@PROJECT_VERSION@-1) unstable; urgency=medium

  * Changes are listed in /usr/share/doc/paceline/CHANGELOG.md.

 -- @PACELINE_MAINTAINER@  @date@
")
file(ARCHIVE_CREATE OUTPUT ${CMAKE_BINARY_DIR}/debian/changelog.Debian.gz PATHS ${CMAKE_BINARY_DIR}/debian/changelog.Debian
     FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)

include(CPack)
