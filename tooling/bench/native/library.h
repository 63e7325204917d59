/*
 * Shared by programs that load a library by its path: errors, and tables of functions.
 *
 * A table is a macro that lists X(name, symbol, result, (parameters)). MEMBER turns it into the members of a struct.
 */
#ifndef SHOAL_LIBRARY_H
#define SHOAL_LIBRARY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void fail(const char* call, const char* words) {
  fprintf(stderr, "%s: %s\n", call, words);
  exit(1);
}

static inline void* open_library(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) fail("dlopen", dlerror());
  return library;
}

static inline void* symbol(void* library, const char* name) {
  void* address = dlsym(library, name);
  if (address == NULL) fail(name, dlerror());
  return address;
}

#define MEMBER(name, symbol_name, result, parameters) result(*name) parameters;

#endif
