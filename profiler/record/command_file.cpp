// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/command_file.h"

#include <elf.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace paceline::record {
namespace {

namespace fs = std::filesystem;

fs::path look_up(const std::string& command) {
  if (command.find('/') != std::string::npos) return command;
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / command;
    std::error_code error;
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, error)) return candidate;
  }
  return {};
}

// The dynamic linker ignores LD_PRELOAD in programs with more rights than their user.
bool runs_with_other_rights(const fs::path& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 && status.st_gid != getgid()) return true;
  return getuid() != 0 && getxattr(file.c_str(), "security.capability", nullptr, 0) > 0;
}

// The dynamic linker that an ELF program names: "" for a static program, nothing if the file is damaged.
template <class Header, class Segment>
std::optional<std::string> dynamic_linker(std::ifstream& file) {
  Header header{};
  file.seekg(0);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!file || header.e_phentsize != sizeof(Segment)) return std::nullopt;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int at = 0; at < header.e_phnum; ++at) {
    Segment segment{};
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (!file) return std::nullopt;
    if (segment.p_type != PT_INTERP) continue;
    std::string path(std::min<std::size_t>(segment.p_filesz, PATH_MAX), '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(path.data(), static_cast<std::streamsize>(path.size()));
    return file ? std::optional(std::string(path.c_str())) : std::nullopt;
  }
  return "";
}

std::string why_not(const fs::path& path, int scripts_left) {
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  char start[256] = "";
  file.read(start, sizeof start - 1);
  file.clear();
  if (start[0] == '#' && start[1] == '!') {
    std::istringstream line(std::string(start + 2, std::strcspn(start + 2, "\n")));
    std::string interpreter, argument;
    line >> interpreter >> argument;
    if (fs::path(interpreter).filename() == "env" && !argument.empty() && argument[0] != '-') {
      interpreter = look_up(argument);
    }
    return scripts_left > 0 && !interpreter.empty() ? why_not(interpreter, scripts_left - 1) : "";
  }
  if (runs_with_other_rights(path)) return "is setuid or setgid or has capabilities";
  if (std::memcmp(start, ELFMAG, SELFMAG) != 0) return {};
  if (start[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32)) return "has another word size";
  const std::optional<std::string> linker = dynamic_linker<Elf64_Ehdr, Elf64_Phdr>(file);
  if (!linker) return {};
  if (linker->empty()) return "is statically linked";
  return linker->find("/ld-musl") != std::string::npos ? "uses the C library musl" : "";
}

}  // namespace

std::string why_not_recorded(const std::string& command) { return why_not(look_up(command), 4); }

}  // namespace paceline::record
