// SPDX-License-Identifier: Apache-2.0
#include "profiler/inject/process/lifecycle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "profiler/inject/buffer/chunks.h"
#include "profiler/inject/buffer/emit_event.h"
#include "profiler/inject/buffer/lost.h"
#include "profiler/inject/buffer/names.h"
#include "profiler/inject/buffer/session.h"
#include "profiler/inject/buffer/writer.h"
#include "profiler/inject/output/output_file.h"
#include "profiler/inject/output/trim.h"
#include "profiler/inject/process/children.h"
#include "profiler/inject/process/clock_events.h"
#include "profiler/inject/process/closers.h"
#include "profiler/inject/process/control.h"
#include "profiler/inject/process/drain.h"
#include "profiler/inject/process/ends.h"
#include "profiler/inject/process/ring.h"
#include "profiler/inject/process/source.h"
#include "profiler/inject/process/starts.h"
#include "profiler/inject/process/unrecorded.h"
#include "profiler/inject/system/lineage.h"
#include "profiler/inject/system/mapping_guard.h"
#include "profiler/inject/system/quiet_thread.h"
#include "profiler/inject/system/say.h"
#include "profiler/inject/system/settings.h"
#include "profiler/launch/launcher.h"

extern "C" void __msan_init() __attribute__((weak));                                 // of MemorySanitizer
extern "C" int on_exit(void (*)(int, void*), void*) noexcept __attribute__((weak));  // not every C library has it

namespace paceline::inject {
namespace {

std::atomic<bool> close_began{false};
thread_local constinit bool opens_the_file __attribute__((tls_model("initial-exec"))) = false;
std::atomic<bool> waited_in_vain{false};
std::atomic<std::uint64_t> early_events{0};  // events that came while the file was being opened and could not wait

// The ranges that show how long a thread waited for room (--lossless).
void define_waits() {
  if (!settings.lossless) return;
  constexpr std::uint32_t own_domain = 4096;  // above those that NVTX's domains get
  set_wait_scope(format::pack_scope(intern(std::string_view("recorder wait")), 0, own_domain));
  emit_surely(events::Domain{.domain = own_domain, .name = intern(std::string_view("paceline"))});
}

void open_file() {
  constexpr int chunks_at_start = 4;
  start_ticks = ticks();
  const FileStart start{start_ticks, system_ns(CLOCK_REALTIME), recorded_parent()};
  if (!create_output(session.file, units_at_start, start)) return;
  // Kernels before 4.14 cannot wipe the page. There the fork handler does it, for fork() at least.
  madvise(&gate, sizeof gate, MADV_WIPEONFORK);
  start_chunks();
  start_lost();
  guard_mapping(session.file.header, session.file.mapped_bytes(), note_that_file_is_cut);
  for (int chunk = 0; chunk < chunks_at_start; ++chunk) populate_chunk();
  session.owner = getpid();
  const std::int64_t started = session.file.header->process_start_utc_ns;
  start_control(started > 0 ? session.file.header->start_utc_ns - started : 0);
  call_sources(&Source::open);
  gate.accepting.store(1, std::memory_order_release);
  gate.open.store(1, std::memory_order_release);
  announce_control();
  record_clock_pair();
  start_drain(close_recorder);
  start_ring();
  define_waits();
  record_clock_error();
  call_sources(&Source::opened);
}

// A program may have reads of the processor's counter end it with SIGSEGV. The system's clocks read it, too.
bool may_read_counter() {
  int mode = PR_TSC_ENABLE;
  return prctl(PR_GET_TSC, &mode) != 0 || mode == PR_TSC_ENABLE;
}

void open_once() {
  const StartInProgress start;
  if (!may_read_counter()) {
    say("not recording: the program forbids reads of the time stamp counter (prctl, PR_SET_TSC), which all clocks "
        "need");
    return;
  }
  if (__msan_init != nullptr) {
    say("not recording: the program is built with MemorySanitizer, which takes what the recorder writes for "
        "uninitialised");
    return;
  }
  // A process with other rights than its user's must not trust the environment.
  if (getauxval(AT_SECURE) != 0) return;
  read_settings();
  if (!find_out_whether_recorded()) return;
  start_clock();
  set_name_listener([](std::uint32_t id, std::string_view text) { call_sources(&Source::name_added, id, text); });
  call_sources(&Source::start);
  // Handlers run in the reverse order of their registration. Events begin in main(), when the system's handler, which
  // runs the libraries' destructors, is there already: so this one runs before close_recorder().
  if (on_exit != nullptr) on_exit([](int status, void*) { note_exit_status(status); }, nullptr);
  open_file();
}

// Opens the file if it is in state `from`. A handler that interrupted the opening would wait for its own thread, so the
// thread takes no signals meanwhile. Those that it cannot block (SIGSEGV, …) find it in the middle of an event.
template <class Open>
void open_if(FileState from, Open open) {
  const SignalsBlocked blocked;
  if (!file_state.compare_exchange_strong(from, FileState::opening)) return;
  opens_the_file = true;
  {
    const ReentrancyGuard guard;
    open();
    count_dropped(format::DropCause::interrupted, early_events.exchange(0));
  }
  opens_the_file = false;
  file_state.store(FileState::settled);
}

void await_opening(std::int64_t longest_wait_ns) {
  const bool in_vain = waited_in_vain.load(std::memory_order_relaxed) && longest_wait_ns <= wait_in_handlers_ns;
  if (opens_the_file || in_vain) return;
  for (const std::int64_t give_up = monotonic_ns() + longest_wait_ns; file_is_being_opened(); usleep(20)) {
    if (monotonic_ns() < give_up) continue;
    waited_in_vain.store(true, std::memory_order_relaxed);
    return;
  }
}

void before_fork() {
  call_sources(&Source::before_fork);
  wait_for_starts();
}

void after_fork_in_parent() {
  fork_is_over();
  note_child();
}

void after_fork_in_child() {
  gate.on.store(0, std::memory_order_relaxed);
  gate.open.store(0, std::memory_order_relaxed);
  gate.accepting.store(0, std::memory_order_relaxed);
  for (std::atomic<std::uint32_t>& flag : gate.source_flags) flag.store(0, std::memory_order_relaxed);
  reset_control_in_child();  // MPI_Pcontrol may be called in any child
  reset_starts_in_child();
  reset_names_in_child();  // another thread may have held the lock, and a name may come before the child's first event
  call_sources(&Source::forked);
  note_fork();
  opens_the_file = waited_in_vain = false;
  early_events = 0;
  if (file_is_being_opened()) file_state = FileState::settled;  // the thread that opens it is not in this child
  const bool recorded = session.file.header != nullptr && !close_began.load(std::memory_order_relaxed);
  if (settings.children == Children::none || (!recorded && file_state != FileState::in_child)) return;
  writer = {};
  file_state = FileState::in_child;
}

void open_in_child() {
  const StartInProgress start;
  // A process that got a rank after the fork is the first process of that rank.
  const std::int32_t rank = record::launched_rank().rank;
  if (rank < 0 || session.file.header == nullptr || rank == session.file.header->rank) become_child_of(session.owner);
  complete_lineage();
  release_output(session.file);
  close_began = false;
  reset_threads_in_child();
  reset_ring_in_child();
  call_sources(&Source::reset_in_child);
  open_file();
  if (gate.open.load(std::memory_order_relaxed) == 0) return;
  repeat_names();
  repeat_definitions();
  call_sources(&Source::opened_in_child);
}

}  // namespace

bool open_or_await() {
  const FileState state = file_state.load(std::memory_order_acquire);
  if (state == FileState::unopened) return false;
  if (state == FileState::in_child) open_if(state, open_in_child);
  if (file_is_being_opened()) await_opening(wait_in_handlers_ns);
  if (gate.open.load(std::memory_order_acquire) != 0) return true;
  if (file_is_being_opened() && !opens_the_file) early_events.fetch_add(1, std::memory_order_relaxed);
  return false;
}

bool open_recorder(std::int64_t longest_wait_ns) {
  if (file_state.load(std::memory_order_acquire) == FileState::unopened) open_if(FileState::unopened, open_once);
  if (file_is_being_opened()) await_opening(longest_wait_ns);
  return file_is_open();
}

void record_rank(std::int32_t rank, std::int32_t ranks, bool replaces) {
  format::FileHeader& header = *session.file.header;
  if (replaces || header.rank < 0) {
    std::atomic_ref<std::int32_t>(header.rank).store(rank, std::memory_order_relaxed);
    std::atomic_ref<std::int32_t>(header.world_size).store(ranks, std::memory_order_relaxed);
  }
  char text[16];
  snprintf(text, sizeof text, "%d", rank);
  record_setting("rank", text);
  snprintf(text, sizeof text, "%d", ranks);
  record_setting("world_size", text);
}

void close_recorder() {
  if (session.file.header == nullptr || session.owner != getpid()) return;
  if (close_began.exchange(true)) return;
  call_closers();
  call_sources(&Source::close);
  gate.on.store(0, std::memory_order_relaxed);
  gate.open.store(0, std::memory_order_relaxed);
  const std::uint64_t end_ticks = ticks();
  record_clock_pair();
  emit_surely(events::ProcessEnd{.status = static_cast<std::uint64_t>(exit_status())});
  call_sources(&Source::closed);
  const MappedFile file = session.file;  // a staged file is moved
  finish_drain(end_ticks);
  trim_files_of_killed_children(file);
}

}  // namespace paceline::inject

// At the start of the program, so that a fork is noticed also before the first event.
__attribute__((constructor)) static void library_loaded() {
  if (getauxval(AT_SECURE) != 0) return;
  paceline::inject::start_writers();
  paceline::inject::look_for_replaced_clock();
  paceline::inject::start_lineage();
  paceline::inject::look_for_command();
  at_quick_exit(paceline::inject::end_at_once);
  pthread_atfork(paceline::inject::before_fork, paceline::inject::after_fork_in_parent,
                 paceline::inject::after_fork_in_child);
}

// Runs after every exit handler and destructor of the program itself.
__attribute__((destructor)) static void program_ends() {
  paceline::inject::report_if_unrecorded();
  paceline::inject::close_recorder();
}
