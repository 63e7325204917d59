#ifndef SHOAL_EGLEXT_H
#define SHOAL_EGLEXT_H

#include <EGL/egl.h>

typedef void *EGLImageKHR;
typedef void *EGLStreamKHR;
typedef void *EGLSyncKHR;

#endif
