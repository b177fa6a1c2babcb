// SPDX-License-Identifier: Apache-2.0
// Replaces the recorder in tests of `paceline record` alone.
void paceline_recorder_is_loaded(void) {}
