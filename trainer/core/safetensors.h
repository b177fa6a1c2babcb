// SPDX-License-Identifier: Apache-2.0
// Safetensors, the file format of named tensors: the length of the header (8 bytes, little-endian), the header (JSON),
// then the tensors' bytes, little-endian. The header maps each name to {"dtype", "shape", "data_offsets": [begin,
// end]}, with offsets from the end of the header, and may map "__metadata__" to texts.
//
// The reader is strict, because such files come from other people: it accepts no overlap, no gap, no offset outside of
// the file, no name that occurs twice, and no length that its shape does not have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::train::safetensors {

struct Tensor {
  std::string name;
  std::string dtype;  // as in the format: F32, F16, BF16, I64, …
  std::vector<std::int64_t> shape;
  std::string_view bytes;  // those of the content that was read, or that is to be written
};

// The tensors of a file's content, in the order of their bytes. They refer to `content`. where: the file's name, for
// messages. Throws Error for content that is not in the format.
std::vector<Tensor> read(std::string_view content, const std::string& where);

// The content of a file with these tensors, whose bytes have the length of their shapes. metadata: a text that names
// the writer. The tensors' bytes start at a multiple of 8.
std::string write(const std::vector<Tensor>& tensors, const std::string& metadata);

// The numbers of a tensor in fp32. F32 is copied, F16 and BF16 are converted. Throws Error for another type.
std::vector<float> floats_of(const Tensor& tensor, const std::string& where);

// A tensor's name for messages: quoted, without control characters, and shortened.
std::string in_quotes(std::string_view name);

// "[64, 3, 7, 7]"
std::string text_of(const std::vector<std::int64_t>& shape);

}  // namespace paceline::train::safetensors
