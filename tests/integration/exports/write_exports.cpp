// SPDX-License-Identifier: Apache-2.0
// usage: write_exports FOLDER
// Writes a hand-made run in every format: FOLDER/whole.NAME, and a part of it as FOLDER/part.NAME. FOLDER/threads.NAME
// is a run of states of threads and samples of stacks.
#include <cstdio>
#include <filesystem>
#include <limits>
#include <string>

#include "analysis/exporters/exporter.h"
#include "analysis/trace/builder.h"

namespace {

using namespace paceline::analysis;
namespace fs = std::filesystem;

// Two ranks with everything that the model has, under names that break careless writers.
Trace hostile_run() {
  TraceBuilder run;
  for (const int number : {0, 3}) {
    Rank info;
    info.rank = number;
    info.world_size = 4;
    info.host = "node \"7\", rack <A>";
    info.pid = 4711 + number;
    info.command = {"python3", "train \xff.py"};
    info.start_ns = -50;
    info.end_ns = 2'000'000;
    info.utc_of_zero_ns = 1'700'000'000'123'456'789;
    RankBuilder& rank = run.add_rank(std::move(info));
    const NameId pair = rank.names().intern("pair");
    rank.add_communicator({pair, 77, 2}, number == 0 ? 0 : 1);
    TrackBuilder& main = rank.add_main_thread();
    main.push(-40, "iteration", "paceline.trainer", "iteration");
    main.argument("payload", 5);
    main.push(100, "quotes \" ' ` \\ and </script>", "do\"main", "cat,egory");
    main.argument("least", std::numeric_limits<std::int64_t>::min());
    main.argument("most", std::numeric_limits<std::uint64_t>::max());
    main.argument("tenth", 0.1);
    main.pop(1000);
    main.add_slice(1000, 1000, "no time at all");
    main.add_slice(1000, 2000, "line\nbreak\ttab \x01\x1f");
    main.add_slice(2000, 3000, "bad \xff\xfe bytes", "torch", "cpu_op");
    main.text_argument("te\"xt", "va\nlue \xc3\xa9");
    main.add_slice(3000, 3001, std::string(3000, 'n') + " \xe2\x88\x9e");
    main.add_slice(4000, 5000, number == 0 ? "MPI_Send" : "MPI_Recv", "mpi", "point-to-point");
    main.argument("bytes", 4096);
    main.text_argument("communicator", "pair");
    main.argument("peer", number == 0 ? 1 : 0);
    main.argument("tag", 9);
    main.add_slice(5000, 6000 + number, "MPI_Allreduce", "mpi", "collective");
    main.argument("bytes", 1 << 20);
    main.text_argument("communicator", "pair");
    main.argument("members", 2);
    main.argument("sequence", 0);
    main.add_slice(6100, 6200, "cudaLaunchKernel", "cuda", "runtime");
    main.argument("correlation", 17);
    main.pop(900'000);
    main.push(950'000, "iteration", "paceline.trainer", "iteration");
    main.argument("payload", 6);
    for (int i = 0; i < 1000; ++i) {
      main.add_slice(950'100 + 100 * i, 950'150 + 100 * i, "small");
      main.argument("number", i);
    }
    main.pop(1'900'000);
    main.add_mark(7'000, "a \"mark\"\n", "marks", "notes");
    main.mark_argument(main.add_mark(960'000, "loss"), "payload", 0.25);
    TrackBuilder& stream = rank.add_track(TrackKind::stream, "GPU 0 stream 7");
    stream.add_slice(7000, 9000, "void gemm<float, 2>(float*)", "cuda", "kernel");
    stream.argument("correlation", 17);
    stream.text_argument("grid", "1×2×3");
    stream.add_slice(9000, 9500, "Memcpy HtoD", "cuda", "memcpy");
    stream.argument("bytes", 100);
    TrackBuilder& nccl = rank.add_track(TrackKind::nccl, "NCCL pair");
    nccl.add_slice(7100, 8900, "ncclAllReduce", "nccl", "collective");
    nccl.argument("bytes", 100);
    TrackBuilder& sent = rank.add_counter("bytes sent", "bytes", "eth0", true);
    for (int i = 0; i < 20; ++i) sent.add_sample(100'000 * i, 1000.0 * i * i);
    TrackBuilder& power = rank.add_counter("po\"wer", "mW", "GPU 0", false);
    for (int i = 0; i < 20; ++i) power.add_sample(50'000 + 100'000 * i, 350.5 + i);
  }
  return run.finish();
}

// Two threads of each rank run, wait and are blocked five times. The main thread is sampled thirty times, once without
// a stack.
Trace thread_run() {
  TraceBuilder run;
  for (const int number : {0, 1}) {
    RankBuilder& rank = run.add_rank(number, 2);
    const auto call = [&](StackId caller, const char* function, const char* file, std::uint32_t line) {
      Names& names = rank.names();
      return rank.stacks().stack(caller, rank.stacks().frame({names.intern(function), names.intern(file), line}));
    };
    TrackBuilder& main = rank.add_main_thread();
    for (TrackBuilder* thread : {&main, &rank.add_track(TrackKind::thread, "loader")}) {
      ThreadStates states{.time_ns = {0}, .running_ns = {0}, .waiting_ns = {0}, .exact = true};
      const auto add = [&](std::int64_t length_ns, std::int64_t running_ns, std::int64_t waiting_ns) {
        states.time_ns.push_back(states.time_ns.back() + length_ns);
        states.running_ns.push_back(states.running_ns.back() + running_ns);
        states.waiting_ns.push_back(states.waiting_ns.back() + waiting_ns);
      };
      for (int i = 0; i < 5; ++i) add(60, 60, 0), add(10, 0, 10), add(30, 0, 0);
      thread->add_states(std::move(states));
      thread->add_slice(0, 500, "work");
    }
    const StackId program = call(0, "main", "train.py", 7);
    const StackId step = call(program, "step \xff", "model.py", static_cast<std::uint32_t>(30 + number));
    const StackId read = call(program, "[read]", "/data/images", 0);
    main.add_stack_sample(0, 0);
    for (int i = 1; i < 30; ++i) main.add_stack_sample(15 * i, i % 3 == 0 ? read : step);
  }
  return run.finish();
}

void write(const Exporter& format, const ExportJob& job, const fs::path& path) {
  if (format.target != Exporter::Target::stream) return format.make(job, path);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  format.write(job, file);
  std::fclose(file);
}

bool refuses(const Exporter& format, const ExportJob& job, const fs::path& path) {
  try {
    write(format, job, path);
  } catch (const paceline::Error&) {
    return true;
  }
  return false;
}

}  // namespace

int main(int, char** arguments) {
  const fs::path folder = arguments[1];
  fs::remove_all(folder);
  fs::create_directories(folder);
  const Trace trace = hostile_run();
  const ExportJob whole(trace), part(trace, Selection({.from_ns = 500, .until_ns = 1'000'000}, {{3, 9}}));
  const Trace of_threads = thread_run();
  const ExportJob threads(of_threads);
  for (const Exporter* format : exporters()) {
    write(*format, whole, folder / ("whole." + std::string(format->name)));
    const fs::path of_part = folder / ("part." + std::string(format->name));
    if (format->name != "chakra") {
      write(*format, part, of_part);
    } else if (!refuses(*format, part, of_part)) {  // a collective has a node on each rank
      return 1;
    }
    write(*format, threads, folder / ("threads." + std::string(format->name)));
  }
}
