// SPDX-License-Identifier: Apache-2.0
// Parameter lists of words for the wrappers: one word for each role in a row of signatures.h.
//
//   PACELINE_WORDS(buffer, count, type)  gives  Word a, Word b, Word c
//   PACELINE_NAMES(buffer, count, type)  gives  a, b, c
#pragma once

#define PACELINE_EXPORT extern "C" __attribute__((visibility("default")))

// Where the function that uses it is called.
#define PACELINE_CALL_SITE __builtin_extract_return_addr(__builtin_return_address(0))

#define WORDS_1 Word a
#define WORDS_2 WORDS_1, Word b
#define WORDS_3 WORDS_2, Word c
#define WORDS_4 WORDS_3, Word d
#define WORDS_5 WORDS_4, Word e
#define WORDS_6 WORDS_5, Word f
#define WORDS_7 WORDS_6, Word g
#define WORDS_8 WORDS_7, Word h
#define WORDS_9 WORDS_8, Word i
#define WORDS_10 WORDS_9, Word j
#define WORDS_11 WORDS_10, Word k
#define WORDS_12 WORDS_11, Word l
#define WORDS_13 WORDS_12, Word m
#define NAMES_1 a
#define NAMES_2 NAMES_1, b
#define NAMES_3 NAMES_2, c
#define NAMES_4 NAMES_3, d
#define NAMES_5 NAMES_4, e
#define NAMES_6 NAMES_5, f
#define NAMES_7 NAMES_6, g
#define NAMES_8 NAMES_7, h
#define NAMES_9 NAMES_8, i
#define NAMES_10 NAMES_9, j
#define NAMES_11 NAMES_10, k
#define NAMES_12 NAMES_11, l
#define NAMES_13 NAMES_12, m

#define PACELINE_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, picked, ...) picked
#define PACELINE_WORDS(...)                                                                                       \
  PACELINE_PICK(__VA_ARGS__, WORDS_13, WORDS_12, WORDS_11, WORDS_10, WORDS_9, WORDS_8, WORDS_7, WORDS_6, WORDS_5, \
                WORDS_4, WORDS_3, WORDS_2, WORDS_1, )
#define PACELINE_NAMES(...)                                                                                       \
  PACELINE_PICK(__VA_ARGS__, NAMES_13, NAMES_12, NAMES_11, NAMES_10, NAMES_9, NAMES_8, NAMES_7, NAMES_6, NAMES_5, \
                NAMES_4, NAMES_3, NAMES_2, NAMES_1, )
