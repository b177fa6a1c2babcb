#include "profiler/inject/output_file.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>

#include "profiler/format/header.h"
#include "profiler/inject/chunk_set.h"
#include "profiler/inject/clock.h"
#include "profiler/inject/say.h"
#include "profiler/record/environment.h"
#include "profiler/record/file_name.h"
#include "profiler/record/launcher.h"

namespace paceline::inject {
namespace {

using format::FileHeader;

constexpr std::size_t default_buffer_bytes = std::size_t{16} << 20;

// The texts of the header; static, because the recorder may be opened on a thread with a small stack.
struct HeaderTexts {
  char host[256];
  char boot_id[128];
  char job[256];
  char directory[4096];
  char command[64 * 1024];
  char environment[16 * 1024];
};
HeaderTexts texts;

std::size_t read_whole(const char* path, char* out, std::size_t capacity) {
  out[0] = '\0';
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::size_t size = 0;
  while (size + 1 < capacity) {
    const ssize_t got = read(file, out + size, capacity - 1 - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  close(file);
  out[size] = '\0';
  return size;
}

// When the system started this process, from its age in clock ticks since boot (to 10 ms); 0 if /proc is missing.
std::int64_t process_start_utc_ns() {
  char stat[1024];
  if (read_whole("/proc/self/stat", stat, sizeof stat) == 0) return 0;
  const char* field = strrchr(stat, ')');  // the name before it may hold anything
  if (field == nullptr) return 0;
  for (int skip = 0; skip < 20 && field != nullptr; ++skip) field = strchr(field + 1, ' ');
  if (field == nullptr) return 0;
  const std::int64_t ticks_a_second = sysconf(_SC_CLK_TCK);
  const std::int64_t since_boot_ns = strtoll(field, nullptr, 10) * (1'000'000'000 / ticks_a_second);
  timespec boot{};
  clock_gettime(CLOCK_BOOTTIME, &boot);
  return system_ns(CLOCK_REALTIME) - (std::int64_t{boot.tv_sec} * 1'000'000'000 + boot.tv_nsec) + since_boot_ns;
}

// What of the environment says how a job ran; never all of it: it may hold secrets.
bool is_told(const char* variable) {
  static const char* const told[] = {"OMP_NUM_THREADS=", "OMP_PROC_BIND=",        "OMP_PLACES=",
                                     "MKL_NUM_THREADS=", "CUDA_VISIBLE_DEVICES=", "NCCL_",
                                     "OMPI_COMM_WORLD_", "OMPI_MCA_btl",          "SLURM_JOB_ID=",
                                     "SLURM_JOB_NAME=",  "SLURM_NNODES=",         "SLURM_NTASKS=",
                                     "PBS_JOBID=",       "PBS_JOBNAME="};
  for (const char* prefix : told) {
    if (strncmp(variable, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

std::size_t told_environment(char* out, std::size_t capacity) {
  std::size_t size = 0;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::size_t length = strlen(*variable) + 1;
    if (!is_told(*variable) || size + length > capacity) continue;
    memcpy(out + size, *variable, length);
    size += length;
  }
  return size;
}

bool make_directories(const char* path) {
  char prefix[4096];
  snprintf(prefix, sizeof prefix, "%s", path);
  for (char* at = prefix + 1; *at != '\0'; ++at) {
    if (*at != '/') continue;
    *at = '\0';
    mkdir(prefix, 0777);
    *at = '/';
  }
  return mkdir(prefix, 0777) == 0 || errno == EEXIST;
}

const char* text_or(const char* variable, const char* otherwise) {
  const char* text = getenv(variable);
  return text != nullptr && *text != '\0' ? text : otherwise;
}

// True if the file there was written by this process before it replaced its program (exec keeps the process id).
bool is_predecessor(const char* path, const FileHeader& header) {
  FileHeader there{};
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool whole = read(file, &there, sizeof there) == static_cast<ssize_t>(sizeof there);
  close(file);
  return whole && memcmp(there.magic, format::file_magic, sizeof there.magic) == 0 && there.pid == header.pid &&
         llabs(there.process_start_utc_ns - header.process_start_utc_ns) < 1'000'000'000;
}

// Makes the file under a name that nobody has: NAME.pace, NAME-2.pace, …
bool make_file(OutputFile& file, const char* directory, const char* name, const FileHeader& header) {
  const bool force = strcmp(text_or(record::env_force, "0"), "1") == 0;
  const char* dot = strrchr(name, '.');
  const int stem = dot != nullptr ? static_cast<int>(dot - name) : static_cast<int>(strlen(name));
  for (int number = 1; number < 10'000; ++number) {
    char suffix[16] = "";
    if (number > 1) snprintf(suffix, sizeof suffix, "-%d", number);
    const int length = snprintf(file.path, sizeof file.path, "%s/%.*s%s%s", directory, stem, name, suffix, name + stem);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof file.path) {
      errno = ENAMETOOLONG;
      return false;
    }
    if (force && !is_predecessor(file.path, header)) unlink(file.path);
    file.descriptor = open(file.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.descriptor >= 0) break;
    if (errno != EEXIST) return false;
  }
  struct stat made {};
  if (file.descriptor < 0 || fstat(file.descriptor, &made) != 0) return false;
  file.device = made.st_dev;
  file.inode = made.st_ino;
#ifdef FS_NOCOW_FL
  // Where writing means copying (btrfs), a full disk would be noticed only when the program writes to the mapping, and
  // kill it.
  int flags = 0;
  if (ioctl(file.descriptor, FS_IOC_GETFLAGS, &flags) == 0) {
    flags |= FS_NOCOW_FL;
    ioctl(file.descriptor, FS_IOC_SETFLAGS, &flags);
  }
#endif
  return true;
}

// Descriptors 0 to 2 may be free in a daemon; the program's own output must never end up in the trace.
void move_above_standard_streams(int& descriptor) {
  const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, 64);
  if (moved < 0) return;
  close(descriptor);
  descriptor = moved;
}

bool write_whole(int descriptor, const void* bytes, std::size_t size, std::uint64_t at) {
  const char* from = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t put = pwrite(descriptor, from, size, static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    from += put;
    at += static_cast<std::uint64_t>(put);
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

bool copy_range(int from, std::uint64_t from_at, int to, std::uint64_t to_at, std::uint64_t size) {
  while (size > 0) {
    off_t in = static_cast<off_t>(from_at), out = static_cast<off_t>(to_at);
    ssize_t copied = copy_file_range(from, &in, to, &out, size, 0);
    if (copied <= 0) {  // not every file system can
      static char buffer[64 * 1024];
      copied = pread(from, buffer, size < sizeof buffer ? size : sizeof buffer, static_cast<off_t>(from_at));
      if (copied <= 0 || !write_whole(to, buffer, static_cast<std::size_t>(copied), to_at)) return false;
    }
    from_at += static_cast<std::uint64_t>(copied);
    to_at += static_cast<std::uint64_t>(copied);
    size -= static_cast<std::uint64_t>(copied);
  }
  return true;
}

std::size_t fill_header(OutputFile& file, void* out, std::uint64_t start_ticks, std::int64_t start_utc_ns) {
  const record::LaunchedRank launched = record::launched_rank();
  gethostname(texts.host, sizeof texts.host - 1);
  read_whole("/proc/sys/kernel/random/boot_id", texts.boot_id, sizeof texts.boot_id);
  texts.boot_id[strcspn(texts.boot_id, "\n")] = '\0';
  if (clock_state.test_domain[0] != '\0') {
    snprintf(texts.boot_id, sizeof texts.boot_id, "test-%s", clock_state.test_domain);
  }
  record::job_identity(texts.job, sizeof texts.job);
  file.job = XXH3_64bits(texts.job, strlen(texts.job));
  file.clock_domain =
      XXH3_64bits_withSeed(texts.host, strlen(texts.host), XXH3_64bits(texts.boot_id, strlen(texts.boot_id)));
  if (getcwd(texts.directory, sizeof texts.directory) == nullptr) texts.directory[0] = '\0';

  format::HeaderFacts facts;
  if (getrandom(&facts.file_id, sizeof facts.file_id, GRND_NONBLOCK) != sizeof facts.file_id) facts.file_id = ticks();
  facts.clock_source = clock_state.source;
  facts.pid = static_cast<std::uint32_t>(getpid());
  facts.ticks_per_second = clock_state.ticks_per_second;
  facts.start_ticks = start_ticks;
  facts.start_utc_ns = start_utc_ns;
  facts.process_start_utc_ns = process_start_utc_ns();
  facts.rank = launched.rank;
  facts.world_size = launched.world_size;
  facts.local_rank = launched.local_rank;
  facts.live_bytes = std::uint64_t{file.chunks} * format::chunk_bytes;
  facts.host = texts.host;
  facts.boot_id = texts.boot_id;
  facts.command = {texts.command, read_whole("/proc/self/cmdline", texts.command, sizeof texts.command)};
  facts.directory = texts.directory;
  facts.job = texts.job;
  facts.environment = {texts.environment, told_environment(texts.environment, sizeof texts.environment)};
  facts.set = text_or(record::env_set, "");
  return format::make_header(facts, out, format::max_header_bytes);
}

std::uint32_t wanted_chunks() {
  const char* text = getenv(record::env_buffer_bytes);
  const std::size_t bytes = text != nullptr ? strtoull(text, nullptr, 10) : default_buffer_bytes;
  const std::size_t chunks = (bytes + format::chunk_bytes - 1) / format::chunk_bytes;
  if (chunks < 4) return 4;
  return chunks < ChunkSet::capacity ? static_cast<std::uint32_t>(chunks) : ChunkSet::capacity;
}

// True if the descriptor still means our file; opens the file again where the program closed it. Without this, blocks
// could end up in a file of the program.
bool is_ours(OutputFile& file) {
  struct stat now {};
  const auto same = [&] { return now.st_dev == file.device && now.st_ino == file.inode; };
  if (fstat(file.descriptor, &now) == 0 && same()) return true;
  int again = open(file.path, O_RDWR | O_CLOEXEC);
  if (again < 0) return false;
  move_above_standard_streams(again);
  file.descriptor = again;
  if (fstat(again, &now) == 0 && same()) return true;
  errno = EBADF;
  return false;
}

}  // namespace

bool create_output(OutputFile& file, std::uint64_t start_ticks, std::int64_t start_utc_ns) {
  const char* directory = text_or(record::env_output, record::default_output);
  void* scratch = mmap(nullptr, format::max_header_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (scratch == MAP_FAILED) return false;
  file.chunks = wanted_chunks();
  const std::size_t header_bytes = fill_header(file, scratch, start_ticks, start_utc_ns);
  const auto* header = static_cast<const FileHeader*>(scratch);
  const std::size_t mapped_bytes = header_bytes + std::size_t{file.chunks} * format::chunk_bytes;

  char name[512];
  const record::FileNameParts parts{texts.host, header->rank, header->pid};
  const char* pattern = text_or(record::env_pattern, record::default_pattern);
  rlimit limit{};
  const char* failed = nullptr;
  int error = 0;
  if (header_bytes == 0) {
    say("not recording: the description of this process (command, --set) is too long for a trace file");
  } else if (record::expand_file_name(pattern, parts, name, sizeof name) == 0 || strchr(name, '/') != nullptr) {
    say("not recording: \"%s\" (PACELINE_PATTERN) does not give a file name; use %%h, %%r, %%p, %%q{VAR}", pattern);
  } else if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
             limit.rlim_cur < mapped_bytes + (std::size_t{1} << 20)) {
    // Writing beyond this limit would kill the program with SIGXFSZ.
    say("not recording: the limit on file sizes (ulimit -f) is below the %zu bytes that a trace file needs",
        mapped_bytes);
  } else if (!make_directories(directory) || !make_file(file, directory, name, *header)) {
    say("not recording: cannot write a trace file in %s: %s", directory, strerror(errno));
  } else if (move_above_standard_streams(file.descriptor);
             (error = posix_fallocate(file.descriptor, 0, static_cast<off_t>(mapped_bytes))) != 0) {
    failed = "cannot reserve its space";
  } else if (!write_whole(file.descriptor, scratch, header_bytes, 0)) {
    failed = "cannot write its header";
    error = errno;
  } else {
    void* mapped = mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor, 0);
    if (mapped != MAP_FAILED) {
      file.header = static_cast<FileHeader*>(mapped);
      file.live = static_cast<std::byte*>(mapped) + header_bytes;
    } else {
      failed = "cannot map it";
      error = errno;
    }
  }
  munmap(scratch, format::max_header_bytes);
  if (failed != nullptr) {
    say("not recording: %s: %s: %s", file.path, failed, strerror(error));
    unlink(file.path);
    close(file.descriptor);
    file.descriptor = -1;
  }
  return file.header != nullptr;
}

void populate(void* area, std::size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  if (madvise(area, bytes, MADV_POPULATE_WRITE) == 0) return;
#endif
  for (std::size_t at = 0; at < bytes; at += format::page_bytes) {
    std::atomic_ref<char>(static_cast<char*>(area)[at]).fetch_or(0, std::memory_order_relaxed);
  }
}

bool append_block(OutputFile& file, std::span<const std::byte> block) {
  std::atomic_ref<std::uint64_t> end(file.header->blocks_end);
  const std::uint64_t at = end.load(std::memory_order_relaxed);
  if (!is_ours(file)) return false;
  if (!write_whole(file.descriptor, block.data(), block.size(), at)) {
    [[maybe_unused]] const int cut = ftruncate(file.descriptor, static_cast<off_t>(at));
    return false;
  }
  end.store(at + block.size(), std::memory_order_release);
  return true;
}

void compact_output(OutputFile& file) {
  if (!is_ours(file)) return;
  const FileHeader& header = *file.header;
  const std::uint64_t blocks_start = header.header_bytes + header.live_bytes;
  const std::uint64_t blocks_bytes = header.blocks_end - blocks_start;
  char temporary[sizeof file.path + 8];
  snprintf(temporary, sizeof temporary, "%s.tmp", file.path);
  const int copy = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  // The header last: a copy that was cut short is not taken for a trace.
  bool done = copy >= 0 && copy_range(file.descriptor, blocks_start, copy, header.header_bytes, blocks_bytes) &&
              copy_range(file.descriptor, format::page_bytes, copy, format::page_bytes,
                         header.header_bytes - format::page_bytes);
  if (done) {
    static char first_page[format::page_bytes];
    memcpy(first_page, file.header, sizeof first_page);
    auto* closed = reinterpret_cast<FileHeader*>(first_page);
    closed->live_bytes = 0;
    closed->blocks_end = header.header_bytes + blocks_bytes;
    closed->closed = 1;
    done = write_whole(copy, first_page, sizeof first_page, 0) && rename(temporary, file.path) == 0;
  }
  if (copy >= 0) close(copy);
  if (done) return;
  unlink(temporary);
#ifdef FALLOC_FL_PUNCH_HOLE
  [[maybe_unused]] const int hole = fallocate(file.descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                              header.header_bytes, static_cast<off_t>(header.live_bytes));
#endif
  std::atomic_ref<std::uint32_t>(file.header->closed).store(1, std::memory_order_release);
}

}  // namespace paceline::inject
