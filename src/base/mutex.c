/* SPDX-License-Identifier: BSD-3-Clause */
/* A mutex that knows which thread has it: the address that stands for one. */
#include "base/mutex.h"

_Thread_local const uint16_t mutex__self;
