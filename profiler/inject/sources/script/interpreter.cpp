// SPDX-License-Identifier: Apache-2.0
// Python's options that keep an interpreter from loading the hooks for PyTorch, however it was started: by the command
// line, env, a shell or the first line of a script.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string_view>

#include "profiler/inject/system/say.h"
#include "profiler/launch/environment.h"
#include "profiler/launch/launcher.h"

namespace paceline::inject {
namespace {

// The first of -I, -E and -S in the options of an interpreter, or 0. 0 also for the helpers that multiprocessing starts
// with the options of their parent.
char option_without_hooks(int count, char** arguments) {
  char found = 0;
  for (int i = 1; i < count; ++i) {
    const std::string_view option = arguments[i];
    if (option.size() < 2 || option[0] != '-' || option[1] == '-') break;
    for (std::size_t at = 1; at < option.size(); ++at) {
      const char letter = option[at];
      const bool is_last = at + 1 == option.size();
      if (letter == 'm') return found;  // what follows belongs to the program
      if (letter == 'c') {
        const char* next = i + 1 < count ? arguments[i + 1] : "";
        const std::string_view code = is_last ? next : arguments[i] + at + 1;
        return code.starts_with("from multiprocessing.") ? '\0' : found;
      }
      if (letter == 'W' || letter == 'X') {
        if (is_last) ++i;  // its value is the next argument
        break;
      }
      if (found == 0 && (letter == 'I' || letter == 'E' || letter == 'S')) found = letter;
    }
  }
  return found;
}

// The interpreter would keep the hooks' folder on sys.path. sitecustomize.py takes it off elsewhere.
void take_folder_off_python_path() {
  const char* given = getenv(record::env_python_path);
  char* kept = given != nullptr ? strdup(given) : nullptr;
  if (kept == nullptr) return;
  char* end = kept;  // of the entries that stay
  for (std::string_view rest = given; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find(':'));
    rest.remove_prefix(entry.size() < rest.size() ? entry.size() + 1 : entry.size());
    if (entry.ends_with(record::pytorch_folder)) continue;
    if (end != kept) *end++ = ':';
    memcpy(end, entry.data(), entry.size());
    end += entry.size();
  }
  *end = 0;
  end == kept ? unsetenv(record::env_python_path) : setenv(record::env_python_path, kept, 1);
  free(kept);
}

}  // namespace
}  // namespace paceline::inject

__attribute__((constructor)) static void check_interpreter(int count, char** arguments) {
  using namespace paceline;
  const char* hooks = getenv(record::env_pytorch);
  if (hooks == nullptr || *hooks == 0) return;
  const std::string_view name = program_invocation_short_name;
  if (!name.starts_with("python") && !name.starts_with("pypy")) return;
  const char option = inject::option_without_hooks(count, arguments);
  if (option == 0) return;
  if (option == 'S') inject::take_folder_off_python_path();
  if (record::launched_rank().rank > 0) return;  // one line for all ranks
  inject::say("PyTorch is not recorded: -%c makes the interpreter %s (process %d)", option,
              option == 'S' ? "skip sitecustomize" : "ignore PYTHONPATH", static_cast<int>(getpid()));
}
