#ifndef SHOAL_EGL_H
#define SHOAL_EGL_H

#include <stdint.h>

typedef int32_t EGLint;

#endif
