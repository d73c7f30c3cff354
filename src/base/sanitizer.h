/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_SANITIZER_H
#define BASE_SANITIZER_H

/* Which sanitizer the compiler builds with, as numbers for #if and for sizes:
 * gcc tells by macros, clang by __has_feature. */

#if defined __SANITIZE_ADDRESS__
#define SANITIZER_ADDRESS 1
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZER_ADDRESS 1
#endif
#endif
#ifndef SANITIZER_ADDRESS
#define SANITIZER_ADDRESS 0
#endif

/* Poisoned memory: who touches it is found by AddressSanitizer; nothing where
 * that is not. */
#if SANITIZER_ADDRESS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes)                             \
    ((void)(address), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes)                           \
    ((void)(address), (void)(bytes))
#endif

#if defined __SANITIZE_THREAD__
#define SANITIZER_THREAD 1
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
#define SANITIZER_THREAD 1
#endif
#endif
#ifndef SANITIZER_THREAD
#define SANITIZER_THREAD 0
#endif

#endif
