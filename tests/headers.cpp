// SPDX-License-Identifier: Apache-2.0
// Nothing but what the precompiled headers need: a program to belong to (tests/CMakeLists.txt).
