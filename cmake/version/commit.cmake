# SPDX-License-Identifier: Apache-2.0
# cmake -D SOURCES=FOLDER -D OUTPUT=FILE -P commit.cmake: writes a source file with the commit of the source tree, "unknown" if
# it is not a git repository of its own. The file is only touched if the commit is another one.
cmake_minimum_required(VERSION 3.25)
set(commit unknown)
if(EXISTS ${SOURCES}/.git)
  execute_process(COMMAND git -C ${SOURCES} describe --always --dirty=+changes --abbrev=10 --exclude=*
                  OUTPUT_VARIABLE described RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(status EQUAL 0)
    set(commit ${described})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"namespace paceline {
extern const char* const built_commit;
const char* const built_commit = \"@commit@\";
}
")
