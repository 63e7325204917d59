import { execFileSync } from 'node:child_process'
import { compileStub } from '../../../ffi/test/support/stub.js'

/** Returns why no library can be compiled here, or undefined. */
export function noCCompiler(): string | undefined {
  try {
    execFileSync('gcc', ['--version'], { stdio: 'pipe' })
    return undefined
  } catch {
    return 'no C compiler: install gcc'
  }
}

/**
 * Compiles a replacement of NVRTC. Its PTX is the source, and its log contains the options, one per line. A name
 * expression `x` becomes `lowered_x`. Each compilation appends a byte to the file in `FAKE_COUNT` and restores signal
 * handlers without their flags, like NVRTC. A source that starts with `#error` fails with the log in `FAKE_LOG`.
 * `sm_42` is not an architecture. `FAKE_NEWEST` is an additional architecture.
 */
export function fakeCompiler(name = 'nvrtc'): string {
  return compileStub(
    name,
    `
#include <stdlib.h>
#include <signal.h>
#include <fcntl.h>
#include <unistd.h>
typedef struct { char* source; char* log; char* expressions[16]; char lowered[16][64]; int count; int failed; } Program;
int nvrtcVersion(int* major, int* minor) { *major = 13; *minor = 0; return 0; }
int nvrtcGetNumSupportedArchs(int* count) { *count = getenv("FAKE_NEWEST") ? 4 : 3; return 0; }
int nvrtcGetSupportedArchs(int* found) {
  found[0] = 90; found[1] = 80; found[2] = 75;
  if (getenv("FAKE_NEWEST")) found[3] = atoi(getenv("FAKE_NEWEST"));
  return 0;
}
const char* nvrtcGetErrorString(int status) { return status == 6 ? "NVRTC_ERROR_COMPILATION" : "other"; }
int nvrtcCreateProgram(Program** p, const char* source, const char* name, int n, const char** headers, const char** names) {
  *p = calloc(1, sizeof(Program));
  (*p)->source = strdup(source); (*p)->log = strdup("");
  return 0;
}
int nvrtcAddNameExpression(Program* p, const char* name) { p->expressions[p->count++] = strdup(name); return 0; }
int nvrtcCompileProgram(Program* p, int count, const char** options) {
  void (*interrupt)(int) = signal(SIGINT, SIG_IGN);
  void (*terminate)(int) = signal(SIGTERM, SIG_IGN);
  signal(SIGINT, interrupt);
  signal(SIGTERM, terminate);
  const char* file = getenv("FAKE_COUNT");
  if (file) { int f = open(file, O_WRONLY | O_APPEND | O_CREAT, 0600); write(f, "x", 1); close(f); }
  if (getenv("FAKE_SLEEP")) usleep(atoi(getenv("FAKE_SLEEP")) * 1000);
  if (!strncmp(p->source, "#error", 6)) {
    p->log = getenv("FAKE_LOG") ? strdup(getenv("FAKE_LOG")) : strdup("program.cu(1): error: #error directive: no\\n  #error no\\n   ^\\n\\n1 error detected in the compilation.\\n");
    p->failed = 1;
    return 6;
  }
  for (int i = 0; i < count; i++) {
    if (strcmp(options[i], "--gpu-architecture=sm_42")) continue;
    p->log = strdup("nvrtc: error: invalid value for --gpu-architecture (-arch)\\n");
    p->failed = 1;
    return 5;
  }
  size_t bytes = 1;
  for (int i = 0; i < count; i++) bytes += strlen(options[i]) + 1;
  p->log = calloc(1, bytes);
  for (int i = 0; i < count; i++) { strcat(p->log, options[i]); strcat(p->log, "\\n"); }
  for (int i = 0; i < p->count; i++) snprintf(p->lowered[i], 64, "lowered_%s", p->expressions[i]);
  return 0;
}
int nvrtcGetProgramLogSize(Program* p, size_t* size) { *size = strlen(p->log) + 1; return 0; }
int nvrtcGetProgramLog(Program* p, char* log) { strcpy(log, p->log); return 0; }
int nvrtcGetPTXSize(Program* p, size_t* size) { *size = p->failed ? 1 : strlen(p->source) + 1; return 0; }
int nvrtcGetPTX(Program* p, char* ptx) { strcpy(ptx, p->source); return 0; }
int nvrtcGetLoweredName(Program* p, const char* name, const char** lowered) {
  for (int i = 0; i < p->count; i++) if (!strcmp(p->expressions[i], name)) { *lowered = p->lowered[i]; return 0; }
  return 10;
}
static size_t heap = 1024;
int nvrtcGetPCHHeapSize(size_t* size) { if (heap == 5) return 1; *size = heap; return 0; }
int nvrtcSetPCHHeapSize(size_t size) { if (size == 7) return 1; heap = size; return 0; }
int nvrtcGetPCHCreateStatus(Program* p) { return heap < 100 ? 15 : heap < 200 ? 14 : 0; }
int nvrtcGetPCHHeapSizeRequired(Program* p, size_t* size) { *size = 4096; return 0; }
int nvrtcDestroyProgram(Program** p) { *p = 0; return 0; }
`,
  )
}
