/*
 * Shared by the programs with one process per rank. They connect by an id that the first rank prints and all ranks
 * receive.
 */
#ifndef SHOAL_BENCH_RANKS_H
#define SHOAL_BENCH_RANKS_H

#include "common.h"

#define MOST_DEVICES 64
#define ID_BYTES 128

/* Prints `id HEX` (first rank) or `waiting` (other ranks), waits for `start HEX`, and reads the id from it. */
static void exchange_id(unsigned char* id, int is_first) {
  if (is_first) {
    printf("id ");
    for (int i = 0; i < ID_BYTES; ++i) printf("%02x", id[i]);
    printf("\n");
  } else {
    printf("waiting\n");
  }
  fflush(stdout);
  char text[2 * ID_BYTES + 1];
  if (scanf(" start %256s", text) != 1 || strlen(text) != 2 * ID_BYTES) fail("start", "no id on standard input");
  for (int i = 0; i < ID_BYTES; ++i) {
    unsigned byte;
    if (sscanf(text + 2 * i, "%2x", &byte) != 1) fail("start", "the id is not hexadecimal");
    id[i] = (unsigned char)byte;
  }
}

#endif
