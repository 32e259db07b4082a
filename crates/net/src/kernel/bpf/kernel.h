/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program uses of the kernel's types. CO-RE moves the members to where the running kernel
 * has them, so only names and types matter here. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
