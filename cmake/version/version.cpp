// SPDX-License-Identifier: Apache-2.0
#include "cmake/version/version.h"

#include <array>
#include <fstream>
#include <sstream>

namespace paceline {

extern const char* const built_commit;  // commit.cpp, which commit.cmake writes

namespace {

// The names are those of Linux. The trainer trains in bf16 where one of the last three is there.
std::string vector_instructions() {
  constexpr std::array<const char*, 7> of_interest{"avx2",        "fma",      "avx512f", "asimd",
                                                   "avx512_bf16", "amx_bf16", "bf16"};
  std::ifstream file("/proc/cpuinfo");
  std::string found;
  for (std::string line; found.empty() && std::getline(file, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    for (std::string word; words >> word;) {
      for (const char* name : of_interest) {
        if (word == name) found += (found.empty() ? "" : " ") + word;
      }
    }
    break;
  }
  return found.empty() ? "none known" : found;
}

}  // namespace

std::string version_text(const std::string& program) {
  return program + " " PACELINE_VERSION "\ncommit      " + built_commit +
         "\ncompiler    " PACELINE_COMPILER "\nprocessor   " + vector_instructions() +
         "\nbuilt with  MPI: " PACELINE_MPI_FOUND "; CUDA: " PACELINE_CUDA_FOUND;
}

}  // namespace paceline
