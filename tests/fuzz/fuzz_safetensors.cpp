// SPDX-License-Identifier: Apache-2.0
// Feeds hostile bytes to the reader of safetensors files. Each input is a whole file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/core/safetensors.h"

namespace {

using namespace paceline::train;

void require(bool holds) {
  if (!holds) std::abort();
}

std::size_t bytes_of(const std::vector<safetensors::Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const safetensors::Tensor& tensor : tensors) bytes += tensor.bytes.size();
  return bytes;
}

}  // namespace

// What was read lies in the file, and is the same again after writing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const std::vector<safetensors::Tensor> tensors = safetensors::read(content, "fuzz");
    require(bytes_of(tensors) <= size);
    for (const safetensors::Tensor& tensor : tensors) {
      require(tensor.bytes.empty() || (tensor.bytes.data() >= content.data() &&
                                       tensor.bytes.data() + tensor.bytes.size() <= content.data() + size));
      try {
        safetensors::floats_of(tensor, "fuzz");
      } catch (const Error& error) {
        require(std::string_view(error.what()).find('\n') == std::string_view::npos);
      }
    }
    const std::string again = safetensors::write(tensors, "fuzz");
    const std::vector<safetensors::Tensor> same = safetensors::read(again, "fuzz");
    require(same.size() == tensors.size() && bytes_of(same) == bytes_of(tensors));
  } catch (const Error& error) {
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
