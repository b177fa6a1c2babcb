#include "trainer/run/gpu_part.h"

#include <dlfcn.h>
#include <fmt/format.h>

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

}  // namespace paceline::train
