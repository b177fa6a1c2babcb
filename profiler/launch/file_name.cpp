// SPDX-License-Identifier: Apache-2.0
#include "profiler/launch/file_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

namespace paceline::record {
namespace {

class Name {
 public:
  Name(char* out, std::size_t capacity) : out_(out), capacity_(capacity) {}

  void put(char c) {
    if (size_ + 1 < capacity_) {
      out_[size_++] = c;
    } else {
      fits_ = false;
    }
  }
  void put_value(const char* text) {
    for (; *text != '\0'; ++text) put(*text == '/' ? '_' : *text);
  }
  std::size_t finish() {
    if (!fits_ || capacity_ == 0) return 0;
    out_[size_] = '\0';
    return size_;
  }

 private:
  char* out_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  bool fits_ = true;
};

}  // namespace

std::size_t expand_file_name(const char* pattern, const FileNameParts& parts, char* out,
                             std::size_t capacity) noexcept {
  Name name(out, capacity);
  char number[16];
  for (const char* at = pattern; *at != '\0'; ++at) {
    if (*at != '%') {
      name.put(*at);
      continue;
    }
    switch (*++at) {
      case '%':
        name.put('%');
        break;
      case 'h':
        name.put_value(parts.host);
        break;
      case 'p':
        snprintf(number, sizeof number, "%u", static_cast<unsigned>(parts.pid));
        name.put_value(number);
        break;
      case 'r':
        snprintf(number, sizeof number, "%d", static_cast<int>(parts.rank));
        name.put_value(parts.rank < 0 ? "x" : number);
        break;
      case 'q': {
        const char* close = at[1] == '{' ? strchr(at, '}') : nullptr;
        char variable[256];
        if (close == nullptr || close == at + 2) return 0;
        const auto length = static_cast<std::size_t>(close - (at + 2));
        if (length >= sizeof variable) return 0;
        memcpy(variable, at + 2, length);
        variable[length] = '\0';
        const char* value = getenv(variable);
        name.put_value(value != nullptr ? value : "");
        at = close;
        break;
      }
      default:
        return 0;
    }
  }
  return name.finish();
}

}  // namespace paceline::record
