// SPDX-License-Identifier: Apache-2.0
// Lets oneDNN believe that the processor has AVX-512, so that the tests see what it would choose there: choosing and
// generating code needs no AVX-512, only running it does. The instructions CPUID and XGETBV of the library's detection
// are replaced in memory by ones that trap, and the handler of the trap adds the bits. It must happen before oneDNN
// looks at the processor, which version 2 does when it is loaded, hence the environment: a program that contains this
// file simulates if it starts with PACELINE_SIMULATED_PROCESSOR=AVX512_CORE or =AVX512_CORE_BF16.
#pragma once

namespace paceline::train {

constexpr const char* simulated_processor = "PACELINE_SIMULATED_PROCESSOR";

// Whether this process simulates. False although the variable is set: this oneDNN detects the processor by other code.
bool processor_is_simulated();

}  // namespace paceline::train
