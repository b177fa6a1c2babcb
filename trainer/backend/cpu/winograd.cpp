// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/winograd.h"

#include <algorithm>

namespace paceline::train::winograd {

#if defined(__x86_64__)

namespace avx2_blocks_of_8 {
extern const Code code;
}
namespace avx2_blocks_of_16 {
extern const Code code;
}
namespace avx512_blocks_of_16 {
extern const Code code;
}
namespace avx2_bf16_blocks_of_16 {
extern const Code code;
}
namespace avx512_bf16_blocks_of_16 {
extern const Code code;
}

std::span<const Code* const> codes() {
  static constexpr const Code* all[]{&avx2_blocks_of_8::code, &avx512_blocks_of_16::code, &avx2_blocks_of_16::code,
                                     &avx512_bf16_blocks_of_16::code, &avx2_bf16_blocks_of_16::code};
  return all;
}

#else

std::span<const Code* const> codes() { return {}; }

#endif

const Code* code_for_blocks_of(std::size_t channels, bool bf16) {
  const auto found = std::ranges::find_if(
      codes(), [&](const Code* code) { return code->block == channels && code->bf16 == bf16 && code->runs_here(); });
  return found == codes().end() ? nullptr : *found;
}

}  // namespace paceline::train::winograd
