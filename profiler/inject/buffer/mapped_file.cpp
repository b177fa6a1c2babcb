// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/buffer/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "profiler/format/recorder_lock.h"
#include "profiler/inject/buffer/gate.h"

namespace paceline::inject {

namespace {

std::atomic<bool> cut{false};

}  // namespace

int open_above_standard_streams(const char* path, int flags) {
  Descriptor opened(open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, file_mode));
  if (!opened.is_open()) return -1;
  const int moved = fcntl(opened.number(), F_DUPFD_CLOEXEC, 64);
  return moved >= 0 ? moved : opened.release();
}

bool is_ours(MappedFile& file) {
  if (file.descriptor.is_ours()) return true;
  const int again = open_above_standard_streams(file.path, 0);
  if (again < 0) return false;
  file.descriptor.move_to(again);
  if (file.descriptor.is_ours()) {
    format::lock_as_recorder(again);
    return true;
  }
  errno = EBADF;
  return false;
}

void populate(void* area, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(area, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  for (std::size_t at = 0; at < bytes; at += format::page_bytes) {
    std::atomic_ref<char>(static_cast<char*>(area)[at]).fetch_or(0, std::memory_order_relaxed);
  }
}

bool was_cut(const MappedFile& file) {
  struct stat now {};
  if (!file_is_cut() && file.descriptor.is_ours(now) && static_cast<std::uint64_t>(now.st_size) < file.mapped_bytes()) {
    note_that_file_is_cut();
  }
  return file_is_cut();
}

bool file_is_cut() { return cut.load(std::memory_order_relaxed); }

void note_that_file_is_cut() {
  cut.store(true, std::memory_order_relaxed);
  gate.on.store(0, std::memory_order_relaxed);
  gate.accepting.store(0, std::memory_order_relaxed);
}

int reserve_space(const MappedFile& file, std::uint64_t from, std::uint64_t bytes) {
  int error = 0;
  do {
    error = posix_fallocate(file.descriptor.number(), static_cast<off_t>(from), static_cast<off_t>(bytes));
  } while (error == EINTR);
  return error;
}

void punch_live_area([[maybe_unused]] MappedFile& file, [[maybe_unused]] std::uint32_t first_chunk,
                     [[maybe_unused]] std::uint32_t chunks) {
#ifdef FALLOC_FL_PUNCH_HOLE
  if (!is_ours(file)) return;
  const std::uint64_t from = file.header->header_bytes + std::uint64_t{first_chunk} * format::chunk_bytes;
  [[maybe_unused]] const int hole =
      fallocate(file.descriptor.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
                static_cast<off_t>(std::uint64_t{chunks} * format::chunk_bytes));
#endif
}

int allocate_live_area(MappedFile& file, std::uint32_t unit) {
  if (!is_ours(file)) return EBADF;
  if (was_cut(file)) return ESTALE;  // it must not grow again
  return reserve_space(file, file.header->header_bytes + std::uint64_t{unit} * format::chunk_bytes,
                       format::chunk_bytes);
}

void release_output(MappedFile& file) {
  if (file.header == nullptr) return;
  munmap(file.header, file.mapped_bytes());
  file.descriptor.close();
  file.header = nullptr;
  file.live = nullptr;
  cut.store(false);
}

}  // namespace paceline::inject
