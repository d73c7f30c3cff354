/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ENGINE_HOOK_H
#define ENGINE_HOOK_H

/* Places where a test build may make a thread lose its core at the worst
 * moment. Nothing in any other build. */
#ifdef TALLYD_HOOKS
void engine_hook(const char *name);
#define ENGINE_HOOK(name) engine_hook(name)
#else
#define ENGINE_HOOK(name) ((void)0)
#endif

#endif
