// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/gpu_part.h"

#include <dlfcn.h>
#include <mpi.h>

#include <filesystem>

#include "trainer/core/error.h"

namespace paceline::train {
namespace {

const GpuPart& load_gpu_part() {
#if PACELINE_HAVE_CUDA_TRAINER
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) throw Error("/proc/self/exe", code.message(), "mount /proc, where the program finds its GPU library");
  const std::string path = program.parent_path().parent_path() / "lib" / "libpaceline-train-cuda.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error("‹device› cuda", dlerror(), "put the folders of cuDNN, cuBLAS and NCCL into LD_LIBRARY_PATH",
                Status::usage);
  }
  const auto find = reinterpret_cast<const GpuPart* (*)()>(dlsym(library, "paceline_gpu_part"));
  if (find == nullptr) {
    throw Error("‹device› cuda", path + " does not belong to this program", "build both again", Status::usage);
  }
  return *find();
#else
  throw Error("‹device› cuda", "this program was built without CUDA", "take ‹device› cpu", Status::usage);
#endif
}

}  // namespace

const GpuPart& gpu_part() {
  static const GpuPart& part = load_gpu_part();
  return part;
}

const GpuPart* open_gpu(const std::string& wish, bool share) {
  if (wish == "cpu") return nullptr;
  std::string reason;
  const GpuPart* part = nullptr;
  try {
    part = &gpu_part();
  } catch (const Error& error) {
    reason = error.what();
  }
  int everywhere = part != nullptr ? 1 : 0;  // one host may lack a library that the others have
  MPI_Allreduce(MPI_IN_PLACE, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (everywhere == 0) {
    if (wish == "auto") return nullptr;
    if (reason.empty()) reason = "‹device› cuda: another host cannot load the libraries for GPUs: install them there";
    throw Error(reason, Status::usage);
  }
  try {
    part->use_device(Ranks(MPI_COMM_WORLD), share);
  } catch (const Error&) {  // thrown on all ranks
    if (wish == "auto") return nullptr;
    throw;
  }
  return part;
}

}  // namespace paceline::train
