// Wraps every function of the software device. It counts the calls, records the arguments of one function, and can make
// the n-th call of one function fail.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
// As many parameters as the longest function has. A function with fewer parameters ignores the rest.
#define PARAMETERS                                                                                            \
  uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h, uint64_t i, \
      uint64_t j, uint64_t k, uint64_t l, uint64_t m, uint64_t n, uint64_t o, uint64_t p
#define ARGUMENTS a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p

typedef uint64_t (*Call)(PARAMETERS);

enum { MOST = 512 };

static struct {
  char name[64];
  Call real;
  uint64_t calls;
} functions[MOST];
static int known;
static int failing = -1;
static uint64_t failsAt, status;
static int callsFirst, hasFailed;

enum { WORDS = 16, BYTES = 256 };
// The last call of the recorded function: its arguments, and the bytes at each argument that is an address.
static struct {
  char name[64];
  uint64_t words[WORDS];
  uint8_t bytes[WORDS][BYTES];
} recorded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/**
 * Reads from a value that may not be an address: write() to a pipe reports a bad address, where a plain read would
 * crash.
 */
static void peek(uint64_t address, uint8_t* bytes) {
  int ends[2];
  memset(bytes, 0, BYTES);
  if (pipe(ends) != 0) return;
  int length = BYTES;
  while (length > 0 && write(ends[1], (const void*)(uintptr_t)address, (size_t)length) != length) length /= 2;
  if (length > 0 && read(ends[0], bytes, (size_t)length) != length) memset(bytes, 0, BYTES);
  close(ends[0]);
  close(ends[1]);
}

static void record(PARAMETERS) {
  const uint64_t words[WORDS] = {ARGUMENTS};
  int index;
  memcpy(recorded.words, words, sizeof words);
  for (index = 0; index < WORDS; ++index) peek(words[index], recorded.bytes[index]);
}

static uint64_t pass(int index, PARAMETERS) {
  pthread_mutex_lock(&lock);
  if (recorded.name[0] != 0 && strcmp(recorded.name, functions[index].name) == 0) record(ARGUMENTS);
  functions[index].calls += 1;
  const int fails = index == failing && functions[index].calls == failsAt;
  if (fails) hasFailed = 1;
  const int calls = !fails || callsFirst;
  const uint64_t answer = status;
  pthread_mutex_unlock(&lock);
  const uint64_t result = calls ? functions[index].real(ARGUMENTS) : 0;
  return fails ? answer : result;
}

#define ONE(n) \
  static uint64_t wrap##n(PARAMETERS) { return pass(0x##n, ARGUMENTS); }
// clang-format off
#define TEN(M, n) M(n##0) M(n##1) M(n##2) M(n##3) M(n##4) M(n##5) M(n##6) M(n##7) M(n##8) M(n##9) M(n##a) M(n##b) \
  M(n##c) M(n##d) M(n##e) M(n##f)
#define HUNDRED(M, n) \
  TEN(M, n##0) TEN(M, n##1) TEN(M, n##2) TEN(M, n##3) TEN(M, n##4) TEN(M, n##5) TEN(M, n##6) TEN(M, n##7) \
  TEN(M, n##8) TEN(M, n##9) TEN(M, n##a) TEN(M, n##b) TEN(M, n##c) TEN(M, n##d) TEN(M, n##e) TEN(M, n##f)
// clang-format on
#define ALL(M) HUNDRED(M, 0) HUNDRED(M, 1)
ALL(ONE)
#define NAME(n) wrap##n,
static const Call wrappers[MOST] = {ALL(NAME)};

static void* sim(void) {
  static void* library;
  if (library == NULL) library = dlopen(getenv("SHIM_SIM"), RTLD_NOW | RTLD_LOCAL);
  return library;
}

// Functions that build error messages never fail here.
static int isAsked(const char* name) {
  return strncmp(name, "cuGetError", 10) != 0 && strcmp(name, "cuDriverGetVersion") != 0 &&
         strncmp(name, "cuGetProcAddress", 16) != 0;
}

static int find(const char* name) {
  int index;
  for (index = 0; index < known; ++index) {
    if (strcmp(name, functions[index].name) == 0) return index;
  }
  return -1;
}

/**
 * Resets the counts. From now on, call number `number` of the function `name` returns `answer`. The real function runs
 * first if `first` is set. An unknown name makes no call fail.
 */
EXPORT int shimWatch(const char* name, uint64_t number, uint64_t answer, uint64_t first) {
  pthread_mutex_lock(&lock);
  int index;
  for (index = 0; index < known; ++index) functions[index].calls = 0;
  failing = find(name);
  failsAt = number;
  status = answer;
  callsFirst = (int)first;
  hasFailed = 0;
  pthread_mutex_unlock(&lock);
  return 0;
}

/** Stops making calls fail. Returns 1 if the chosen call came. */
EXPORT int shimUnwatch(void) {
  pthread_mutex_lock(&lock);
  failing = -1;
  const int answer = hasFailed;
  pthread_mutex_unlock(&lock);
  return answer;
}

/** The name of a function that the package looked up, and the number of its calls. */
EXPORT int shimCalled(uint64_t index, char* name, uint64_t* calls) {
  if (index >= (uint64_t)known) return 0;
  pthread_mutex_lock(&lock);
  memcpy(name, functions[index].name, sizeof functions[index].name);
  *calls = functions[index].calls;
  pthread_mutex_unlock(&lock);
  return 1;
}

/** Records the calls of this function from now on, and clears the record. */
EXPORT int shimRecord(const char* name) {
  pthread_mutex_lock(&lock);
  memset(&recorded, 0, sizeof recorded);
  strncpy(recorded.name, name, sizeof recorded.name - 1);
  pthread_mutex_unlock(&lock);
  return 0;
}

EXPORT int shimRecorded(uint64_t* words, uint8_t* bytes) {
  pthread_mutex_lock(&lock);
  memcpy(words, recorded.words, sizeof recorded.words);
  memcpy(bytes, recorded.bytes, sizeof recorded.bytes);
  recorded.name[0] = 0;
  pthread_mutex_unlock(&lock);
  return 0;
}

EXPORT int shimPeek(uint64_t address, uint8_t* bytes) {
  peek(address, bytes);
  return 0;
}

EXPORT int shoalSimLeft(char* text, uint64_t room) {
  int (*real)(char*, uint64_t) = (int (*)(char*, uint64_t))dlsym(sim(), "shoalSimLeft");
  return real(text, room);
}

EXPORT const char* shoalSimDescribe(void) { return "functions that can fail in front of the software device"; }

EXPORT int cuDriverGetVersion(int* version) {
  int (*real)(int*) = (int (*)(int*))dlsym(sim(), "cuDriverGetVersion");
  return real(version);
}

EXPORT int cuGetProcAddress_v2(const char* symbol, void** function, int version, uint64_t flags, int* answer) {
  int (*real)(const char*, void**, int, uint64_t, int*) =
      (int (*)(const char*, void**, int, uint64_t, int*))dlsym(sim(), "cuGetProcAddress_v2");
  const int result = real(symbol, function, version, flags, answer);
  if (result != 0 || *function == NULL || !isAsked(symbol)) return result;
  pthread_mutex_lock(&lock);
  int index;
  for (index = 0; index < known; ++index) {
    if (functions[index].real == (Call)*function && strcmp(functions[index].name, symbol) == 0) break;
  }
  if (index == known && known < MOST) {
    strncpy(functions[index].name, symbol, sizeof functions[index].name - 1);
    functions[index].real = (Call)*function;
    known += 1;
  }
  if (index < MOST) *function = (void*)wrappers[index];
  pthread_mutex_unlock(&lock);
  return result;
}
