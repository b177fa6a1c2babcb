// SPDX-License-Identifier: Apache-2.0
// Variables that are read for each range lie side by side in one section. Between two ranges a program computes, which
// removes them from the caches and their pages from the translation buffer. Each page that a range touches then costs
// more than all instructions of the range.
#pragma once

// For variables with constant initialisation.
#define PACELINE_HOT __attribute__((section("paceline_hot")))
