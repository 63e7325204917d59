#ifndef SHOAL_GL_H
#define SHOAL_GL_H

typedef unsigned int GLenum;
typedef unsigned int GLuint;

/* On AArch64 the interoperability header asks for it. */
#define GL_VERSION 0x1F02

#endif
