import { expect, test } from 'vitest'
import { compileStub, moduleRunner } from '../../ffi/test/support/stub.js'

// Calls through a library compiled from C, because no machine without a GPU has an NVML that answers.

const runModule = moduleRunner(new URL('../', import.meta.url))

/** NVML of CUDA 13.0 with one GPU. It reports its version when it is initialized, as the real one does. */
const stub = compileStub(
  'nvml',
  `
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_t;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu, compute; } process_t;
static int users, device;
int nvmlInit(void) { return 999; }
int nvmlInit_v2(void) { users++; return 0; }
int nvmlShutdown(void) { if (users == 0) return 1; users--; return 0; }
const char* nvmlErrorString(int status) { return status == 25 ? "Argument version mismatch" : "Unknown Error"; }
int nvmlSystemGetCudaDriverVersion(int* version) { if (users == 0) return 1; *version = 13000; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index > 0) return 2;
  *handle = &device;
  return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void* handle, memory_t* memory) {
  if (handle != &device) return 2;
  if (memory->version != (sizeof(memory_t) | 2 << 24)) return 25;
  memory->total = 1ull << 40;
  memory->used = (1ull << 53) + 1;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* handle, unsigned* count, process_t* processes) {
  const unsigned room = *count;
  *count = 2;
  if (room < 2) return 7;
  for (unsigned index = 0; index < 2; index++) processes[index] = (process_t){ 100 + index, 1ull << 33, 0xffffffff, 0 };
  return 0;
}
`,
)

const load = `
  const nvml = await import('@shoal/nvml-sys')
  const { readCString } = await import('@shoal/ffi')
  const handle = new BigUint64Array(1)
  const print = (...values) => console.log(values.join(' '))`

const run = (source: string, environment: Record<string, string> = { SHOAL_NVML_LIBRARY: stub }): string[] =>
  runModule(`${load}\n${source}`, environment)

test('a plain name calls the newest ABI, and a numbered name an earlier one', () => {
  expect(run('print(nvml.nvmlInit(), nvml.nvmlInit_v1())')).toEqual(['0 999'])
})

test('handles, versioned structs and arrays pass through C', () => {
  const source = `
    nvml.nvmlInit()
    print(nvml.nvmlDeviceGetHandleByIndex(1, handle), nvml.nvmlDeviceGetHandleByIndex(0, handle))
    const device = nvml.nvmlDevice_t(handle[0])
    const memory = nvml.nvmlMemory_v2_t.allocate({ version: nvml.nvmlMemory_v2 })
    print(nvml.nvmlDeviceGetMemoryInfo_v2(device, memory))
    const { total, used } = nvml.nvmlMemory_v2_t.read(memory)
    print(total, used)
    const count = new Uint32Array(1)
    print(nvml.nvmlDeviceGetComputeRunningProcesses(device, count, null), count[0])
    const { size } = nvml.nvmlProcessInfo_t
    const processes = new Uint8Array(2 * size)
    print(nvml.nvmlDeviceGetComputeRunningProcesses(device, count, processes))
    const { pid, usedGpuMemory, gpuInstanceId } = nvml.nvmlProcessInfo_t.read(processes, size)
    print(pid, usedGpuMemory, gpuInstanceId)`
  expect(run(source)).toEqual(['2 0', '0', '1099511627776 9007199254740993', '7 2', '0', '101 8589934592 4294967295'])
})

test('a struct without its version is refused by NVML, whose status has a text', () => {
  const source = `
    nvml.nvmlDeviceGetHandleByIndex(0, handle)
    const status = nvml.nvmlDeviceGetMemoryInfo_v2(handle[0], nvml.nvmlMemory_v2_t.allocate({}))
    print(status === nvml.nvmlReturn_t.NVML_ERROR_ARGUMENT_VERSION_MISMATCH)
    print(readCString(nvml.nvmlErrorString(status)))`
  expect(run(source)).toEqual(['true', 'Argument version mismatch'])
})

test('a function that is newer than the library throws with both versions', () => {
  const source = `
    const attempt = () => { try { nvml.nvmlDeviceGetHostname_v1(null, null) } catch (error) { print(error.name, error.since, error.installed) } }
    print(nvml.nvml.version ?? 'unknown')
    nvml.nvmlInit()
    print(nvml.nvml.version)
    attempt()
    print(nvml.nvml.has('nvmlDeviceGetHostname_v1'), nvml.nvml.has('nvmlInit_v2'))`
  expect(run(source)).toEqual(['unknown', '13000', 'VersionTooOldError 13.1 13.0', 'false true'])
})

test('an import loads neither NVML nor a driver', () => {
  const source = `
    const { readFileSync } = await import('node:fs')
    print(nvml.nvml.isLoaded, /nvml|libnvidia|libcuda/.test(readFileSync('/proc/self/maps', 'utf8').replaceAll(/.*nvml-sys.*/g, '')))`
  expect(run(source)).toEqual(['false false'])
})

test('the software device has no NVML: a call throws a typed error and uses no GPU', () => {
  const source = `
    try { nvml.nvmlInit() } catch (error) { print(error.name, error.message.replaceAll('\\n', ' ')) }
    print(nvml.nvml.isLoaded)`
  const [error, loaded] = run(source, { SHOAL_DEVICE: 'sim', SHOAL_NVML_LIBRARY: '' })
  expect(error).toMatch(/^LibraryNotFoundError .*NVIDIA NVML: the software device has no such library/)
  expect(error).toContain('without SHOAL_DEVICE=sim')
  expect(loaded).toBe('false')
})
