// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/sources/stacks/loaded_code.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "profiler/inject/buffer/names.h"
#include "profiler/inject/sources/stacks/function_names.h"
#include "profiler/inject/sources/stacks/number_table.h"
#include "profiler/inject/system/descriptor.h"
#include "profiler/inject/system/sysfs.h"
#include "profiler/inject/system/system_clock.h"

[[gnu::weak]] extern r_debug _r_debug;  // weak, because not every C library has it

namespace paceline::inject {
namespace {

constexpr std::size_t longest_path = 512;

// A file in memory.
struct Image {
  Address begin = 0;            // of its first byte
  Address bias = 0, table = 0;  // added to the file's addresses; where .eh_frame_hdr is, or 0
  std::uint32_t file = 0;
  bool opened = false;
  CodeOwner owner = CodeOwner::program;
  FunctionNames names;
  char path[longest_path] = "";
};
// A piece of code in memory.
struct Piece {
  Address begin = 0, end = 0;
  Image* image = nullptr;  // nullptr: not a file's
};
constexpr std::size_t most_images = 1024, most_pieces = 4096;
Image* images = nullptr;  // also those that are gone: they may come back
Piece* pieces = nullptr;
std::size_t image_count = 0, piece_count = 0;
std::uint64_t pieces_hash = 0;
constexpr std::int64_t second = 1'000'000'000;
// Where nothing is at an instruction, each look for it comes after twice as long as the one before, up to this.
constexpr std::int64_t longest_wait_ns = 16 * second;
std::int64_t next_look_ns = 0, wait_ns = second;

std::uint64_t libraries = 0;  // a hash of the loader's list, when it was last read
std::int64_t next_libraries_ns = 0, next_whole_list_ns = 0;

// What is known about instructions, by their addresses.
constexpr std::size_t most_functions = std::size_t{1} << 15;
NumberTable numbers(2 * most_functions);  // and about functions
LoadedFunction* functions = nullptr;
std::uint32_t function_count = 0;

template <class Item>
bool allocate(Item*& items, std::size_t count) {
  if (items != nullptr) return true;
  void* memory =
      mmap(nullptr, count * sizeof(Item), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  items = static_cast<Item*>(memory);
  return true;
}

CodeOwner owner_of(std::string_view path, Address begin, Address end) {
  const auto own = reinterpret_cast<Address>(&owner_of);
  if (begin <= own && own < end) return CodeOwner::recorder;
  std::string_view name = path;
  name.remove_prefix(name.rfind('/') + 1);
  for (const char* start : {"libc.so", "libc-2", "libpthread", "ld-", "libc.musl"}) {
    if (name.starts_with(start)) return CodeOwner::c_library;
  }
  return CodeOwner::program;
}

// Calls visit(line) for each line of a file of any length.
template <class Visit>
void each_line(const char* path, Visit visit) {
  static char text[64 * 1024];
  const Descriptor file(open_high(path));
  std::size_t kept = 0;
  for (;;) {
    const ssize_t got = file.is_open() ? read(file.number(), text + kept, sizeof text - kept - 1) : 0;
    if (got <= 0) return;
    text[kept + static_cast<std::size_t>(got)] = '\0';
    char* line = text;
    for (char* end = nullptr; (end = strchr(line, '\n')) != nullptr; line = end + 1) {
      *end = '\0';
      visit(line);
    }
    kept = strlen(line);
    memmove(text, line, kept + 1);
    if (kept > sizeof text / 2) kept = 0;  // no line of this file
  }
}

Piece* piece_at(Address instruction) {
  Piece* end = pieces + piece_count;
  Piece* after =
      std::upper_bound(pieces, end, instruction, [](Address at, const Piece& piece) { return at < piece.begin; });
  return after != pieces && instruction < (after - 1)->end ? after - 1 : nullptr;
}

Image* image_at(Address begin, const char* path) {
  Image* const end = images + image_count;
  Image* known = std::find_if(
      images, end, [&](const Image& image) { return image.begin == begin && strcmp(image.path, path) == 0; });
  if (known != end) return known;
  if (image_count == most_images) return nullptr;
  Image& image = images[image_count++];
  image.begin = begin;
  strcpy(image.path, path);
  return &image;
}

// FNV-1a, on top of a hash of what came before.
constexpr std::uint64_t first_hash = 0xcbf29ce484222325;
void add_to_hash(const void* bytes, std::size_t count, std::uint64_t& hash) {
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
}

// Where a library is, and its path.
bool add_library(ProgramMemory& memory, const link_map* at, link_map& library, std::uint64_t& hash) {
  char path[128] = "";
  if (!memory.read_value(reinterpret_cast<Address>(at), library)) return false;
  if (memory.read_value(reinterpret_cast<Address>(library.l_name), path))
    add_to_hash(path, strnlen(path, sizeof path), hash);
  add_to_hash(&library.l_addr, sizeof library.l_addr, hash);
  return true;
}

// The last library of the loader's list.
struct ListEnd {
  const link_map *last = nullptr, *before = nullptr;
  std::uint64_t hash = 0;  // of `last` alone

  // The loader adds libraries at the end.
  bool is_still_there(ProgramMemory& memory) const {
    link_map library, previous;
    std::uint64_t now = first_hash;
    return last != nullptr && before != nullptr && add_library(memory, last, library, now) && now == hash &&
           library.l_next == nullptr && library.l_prev == before &&
           memory.read_value(reinterpret_cast<Address>(before), previous) && previous.l_next == last;
  }
};

// Of the whole list. The loader may change it meanwhile, which gives another hash, too.
std::uint64_t hash_of_libraries(ProgramMemory& memory, ListEnd& end) {
  constexpr unsigned most_libraries = 4096;
  std::uint64_t hash = first_hash;
  end = {};
  const link_map* next = &_r_debug == nullptr ? nullptr : _r_debug.r_map;
  for (unsigned i = 0; next != nullptr && i < most_libraries; ++i) {
    link_map library;
    std::uint64_t alone = first_hash;
    if (!add_library(memory, next, library, hash) || !add_library(memory, next, library, alone)) break;
    end = {next, library.l_prev, alone};
    next = library.l_next;
  }
  return hash;
}

ListEnd list_end;

void forget_functions() {
  numbers.clear();
  function_count = 0;
}

void find_pieces() {
  piece_count = 0;
  std::uint64_t hash = first_hash;
  Address first = 0;  // where the latest file's first byte is
  char first_path[longest_path] = "";
  each_line("/proc/self/maps", [&](const char* line) {
    unsigned long begin = 0, end = 0, offset = 0;
    char access[5] = "", path[longest_path] = "";
    if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %511[^\n]", &begin, &end, access, &offset, path) < 4) return;
    const bool is_file = path[0] == '/' || strcmp(path, "[vdso]") == 0;
    if (is_file && offset == 0) {
      first = begin;
      strcpy(first_path, path);
    }
    if (access[2] != 'x' || piece_count == most_pieces) return;
    Image* image = is_file && strcmp(path, first_path) == 0 ? image_at(first, path) : nullptr;
    if (image != nullptr && !image->opened) image->owner = owner_of(path, begin, end);
    const Piece& piece = pieces[piece_count++] = {begin, end, image};
    add_to_hash(&piece, sizeof piece, hash);
  });
  if (std::exchange(pieces_hash, hash) != hash) forget_functions();
}

// Reads the program headers of the image.
void open_image(ProgramMemory& memory, Image& image) {
  image.opened = true;
  const std::string_view path = image.path;
  image.file = intern(path == "[vdso]" ? "vdso" : path);
  Elf64_Ehdr head;
  if (!memory.read_value(image.begin, head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_phentsize != sizeof(Elf64_Phdr)) {
    return;
  }
  const auto segment_at = [&](unsigned i, Elf64_Phdr& segment) {
    return memory.read_value(image.begin + head.e_phoff + i * sizeof segment, segment);
  };
  Elf64_Phdr segment;
  image.bias = image.begin;
  for (unsigned i = 0; i < head.e_phnum && segment_at(i, segment); ++i) {
    if (segment.p_type == PT_LOAD && segment.p_offset == 0) image.bias = image.begin - segment.p_vaddr;
  }
  for (unsigned i = 0; i < head.e_phnum && segment_at(i, segment); ++i) {
    if (segment.p_type == PT_GNU_EH_FRAME) image.table = image.bias + segment.p_vaddr;
  }
  if (path.starts_with('/')) image.names.open(image.path);
}

void describe(ProgramMemory& memory, const Piece& piece, Address instruction, LoadedFunction& out) {
  out.code_begin = piece.begin;
  out.code_end = piece.end;
  if (piece.image == nullptr) {
    out.name = intern("(code made at run time)");
    return;
  }
  Image& image = *piece.image;
  if (!image.opened) open_image(memory, image);
  out.file = image.file;
  out.owner = image.owner;
  Address function = instruction;
  if (image.table != 0) {
    if (const auto found = find_rule(memory, image.table, instruction)) {
      function = found->function;
      out.has_rule = true;
      out.rule = found->rule;
    }
  }
  // Instructions of one function share its name.
  constexpr std::uint64_t by_function = 2;
  if (const std::uint32_t known = out.has_rule ? numbers.find(function, by_function) : 0; known != 0) {
    out.name = functions[known - 1].name;
    return;
  }
  if (out.has_rule) numbers.add(function, by_function, function_count + 1);
  char text[longest_name / 8];
  // Code without a rule is written in assembly: its symbol is the last one before the instruction.
  std::string_view name = image.names.find(out.has_rule ? function - image.bias : 0, instruction - image.bias,
                                           image.path, text, sizeof text);
  if (name.empty()) {
    snprintf(text, sizeof text, "0x%lx", static_cast<unsigned long>(function - image.bias));
    name = text;
  }
  out.name = intern(name);
}

}  // namespace

const LoadedFunction* function_at(ProgramMemory& memory, Address instruction, bool is_there) {
  if (const std::uint32_t known = numbers.find(instruction, 1); known != 0) return functions + known - 1;
  if (!allocate(images, most_images) || !allocate(pieces, most_pieces) || !allocate(functions, most_functions)) {
    return nullptr;
  }
  Piece* piece = piece_at(instruction);
  if (piece == nullptr) {
    const std::int64_t now = monotonic_ns();
    if (now < next_look_ns || !is_there) return nullptr;
    find_pieces();
    piece = piece_at(instruction);
    wait_ns = piece == nullptr ? std::min(2 * wait_ns, longest_wait_ns) : second;
    next_look_ns = now + wait_ns;
    if (piece == nullptr) return nullptr;
  }
  if (function_count == most_functions || numbers.is_full()) forget_functions();
  LoadedFunction& function = functions[function_count];
  function = {};
  describe(memory, *piece, instruction, function);
  numbers.add(instruction, 1, ++function_count);
  return &function;
}

void look_for_other_libraries(ProgramMemory& memory, std::int64_t now_ns) {
  if (piece_count == 0 || now_ns < next_libraries_ns) return;
  next_libraries_ns = now_ns + second;
  memory.forget_pages();
  if (now_ns < next_whole_list_ns && list_end.is_still_there(memory)) return;
  next_whole_list_ns = now_ns + 60 * second;
  const std::uint64_t now = hash_of_libraries(memory, list_end);
  if (libraries != 0 && now != libraries) find_pieces();
  libraries = now;
}

bool in_one_piece(Address a, Address b) {
  const Piece* piece = piece_at(a);
  return piece != nullptr && piece == piece_at(b);
}

void forget_loaded_code() {
  for (std::size_t i = 0; i < image_count; ++i) images[i].names.close();
  forget_functions();
  image_count = piece_count = 0;
  pieces_hash = 0;
  wait_ns = second;
  next_look_ns = next_libraries_ns = next_whole_list_ns = 0;
  libraries = 0;
}

}  // namespace paceline::inject
