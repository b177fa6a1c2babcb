# SPDX-License-Identifier: Apache-2.0
# How everything here is compiled: language level, warnings, output folders, ccache, sanitizers.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Programs find their libraries beside them, in the build tree and in any install prefix.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache's manual asks for with precompiled headers. Depend mode: a file that is not in the
  # cache is not preprocessed once more to find that out, a quarter of its time.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()

# Linked into every target of ours by name, never into foreign ones.
add_library(paceline_build_flags INTERFACE)
target_compile_options(paceline_build_flags INTERFACE
  $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-Wall -Wextra -Werror> $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Werror=all-warnings>
  $<$<COMPILE_LANG_AND_ID:CUDA,Clang>:-Wall -Wextra -Werror -Wno-unknown-cuda-version>)
target_include_directories(paceline_build_flags INTERFACE ${CMAKE_SOURCE_DIR})

# Options that sources with precompiled headers need: for ccache; and because GCC 12 takes the false alarms that it raises
# inside the standard library for ours, once the library comes from a precompiled header.
function(paceline_precompiled target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-array-bounds -Wno-restrict
                           -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()

# The headers that a target's sources have in common and that cost most, compiled once. A unity build that compiles all
# sources at once has them once anyway. ALWAYS: the precompiled headers are for other targets too.
function(paceline_precompile target)
  list(FIND ARGN ALWAYS always)
  list(REMOVE_ITEM ARGN ALWAYS)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  if(CMAKE_UNITY_BUILD AND always EQUAL -1 AND count LESS_EQUAL CMAKE_UNITY_BUILD_BATCH_SIZE)
    return()
  endif()
  list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>" OUTPUT_VARIABLE headers)
  target_precompile_headers(${target} PRIVATE ${headers})
  paceline_precompiled(${target})
endfunction()

# For targets that parse options and print: a third of the time to compile them is saved, and nothing gets slower that
# anybody waits for.
function(paceline_plain target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# Release builds are compiled with -O2, which takes a sixth less time than CMake's -O3. Targets whose speed is promised
# have -O3.
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()
function(paceline_fast target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_CXX_FLAGS_RELEASE MATCHES "-O2")
    target_compile_options(${target} PRIVATE $<$<NOT:$<COMPILE_LANGUAGE:CUDA>>:-O3>)
  endif()
endfunction()

# Sanitized builds do without optimisation, which would more than double their time to compile, but for targets that
# compute much.
function(paceline_computes target)
  paceline_fast(${target})
  if(PACELINE_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()
if(PACELINE_SANITIZE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # GNU's linker takes four times as long for programs with sanitizers.
    include(CheckLinkerFlag)
    check_linker_flag(CXX -fuse-ld=lld HAVE_LLD)
    if(HAVE_LLD)
      add_link_options(-fuse-ld=lld)
    endif()
    if(PACELINE_SANITIZE MATCHES "address")
      set(PACELINE_FUZZ ON)
    endif()
  endif()
  add_compile_options(-fsanitize=${PACELINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${PACELINE_SANITIZE})
endif()

# Libraries that the fuzzers test: clang's sanitized build counts the branches in them that libFuzzer looks at.
function(paceline_fuzzed target)
  if(PACELINE_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()
