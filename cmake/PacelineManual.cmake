# SPDX-License-Identifier: Apache-2.0
# Man pages and bash completion, generated from the --help of each program, so that they have exactly its options.
find_package(Python3 QUIET COMPONENTS Interpreter)
if(PACELINE_SANITIZE)
  return()
endif()
if(NOT Python3_FOUND)
  message(STATUS "Paceline: man pages and bash completion left out: install python3 (Debian's name) to have them")
  return()
endif()
set(manual ${CMAKE_BINARY_DIR}/manual)
set(manual_programs paceline)
foreach(target paceline-train paceline-view)
  if(TARGET ${target})
    list(APPEND manual_programs ${target})
  endif()
endforeach()
list(TRANSFORM manual_programs REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE manual_files)
add_custom_command(OUTPUT ${manual}/man1/paceline.1
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/manual/manual.py ${PROJECT_VERSION} ${manual} ${manual_files}
  DEPENDS ${manual_programs} ${CMAKE_SOURCE_DIR}/cmake/manual/manual.py
  COMMENT "Man pages and bash completion" VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual}/man1/paceline.1)

# With the component of its program: paceline-train-*.1 belong to the trainer.
foreach(target ${manual_programs})
  if(target STREQUAL paceline-train)
    set(component trainer)
  elseif(target STREQUAL paceline-view)
    set(component viewer)
  else()
    set(component program)
  endif()
  # $<...> is not known here: the pages are chosen when they are installed. Packages have them compressed.
  install(CODE "
    file(GLOB pages \"${manual}/man1/${target}*.1\")
    if(\"${component}\" STREQUAL program)
      list(FILTER pages EXCLUDE REGEX \"paceline-(train|view)\")
    endif()
    foreach(page IN LISTS pages)
      get_filename_component(name \"\${page}\" NAME)
      execute_process(COMMAND gzip -9nc \"\${page}\" OUTPUT_FILE \"${manual}/\${name}.gz\" COMMAND_ERROR_IS_FATAL ANY)
      file(INSTALL \"${manual}/\${name}.gz\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/man/man1\")
    endforeach()
    if(EXISTS \"${manual}/completions/${target}\")
      file(INSTALL \"${manual}/completions/${target}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/share/bash-completion/completions\")
    endif()" COMPONENT ${component})
endforeach()
