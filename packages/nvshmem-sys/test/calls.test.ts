import { expect, test } from 'vitest'
import { expectLightImport } from '../../ffi/test/support/importing.js'
import { compileStub, moduleRunner } from '../../ffi/test/support/stub.js'

const runModule = moduleRunner(new URL('../', import.meta.url))

// A replacement for an NVSHMEM that is older than some functions. Functions that return a small integer leave garbage
// above it in the register, as C compilers may.
const library = compileStub(
  'nvshmem',
  `
typedef struct { int major, minor, patch; } Version;
void nvshmemx_vendor_get_version_info(int* major, int* minor, int* patch) { *major = 3; *minor = 2; *patch = 5; }
void nvshmem_float_p(float* dest, const float value, int pe) { dprintf(1, "float_p %p %a %d\\n", dest, value, pe); }
void nvshmem_double_p(double* dest, const double value, int pe) { dprintf(1, "double_p %p %a %d\\n", dest, value, pe); }
void nvshmem_half_p(void* dest, uint16_t value, int pe) { dprintf(1, "half_p %p %x %d\\n", dest, value, pe); }
void nvshmem_schar_p(signed char* dest, signed char value, int pe) { dprintf(1, "schar_p %d %d\\n", value, pe); }
float nvshmem_float_g(const float* src, int pe) { return *src * 2; }
double nvshmem_double_atomic_swap(double* dest, double value, int pe) { double old = *dest; *dest = value; return old; }
float nvshmem_float_atomic_fetch(const float* dest, int pe) { return *dest; }
uint64_t nvshmem_char_g(const char* src, int pe) { return 0xabcdef00u | (unsigned char)*src; }
uint64_t nvshmem_ushort_g(const void* src, int pe) { return 0xabcd0000u | *(uint16_t*)src; }
uint64_t nvshmem_half_g(const void* src, int pe) { return 0xabcd0000u | *(uint16_t*)src; }
uint64_t nvshmem_short_g(const void* src, int pe) { return 0x12340000u | *(uint16_t*)src; }
long nvshmem_long_atomic_compare_swap(long* dest, long cond, long value, int pe) {
  long old = *dest; if (old == cond) *dest = value; return old;
}
void nvshmemx_double_wait_until(void) {}
void nvshmemx_float_p_on_stream(float* dest, const float value, int pe, void* stream) {
  dprintf(1, "p_on_stream %a %d %llx\\n", value, pe, (unsigned long long)stream);
}
void nvshmemx_int_put_signal_on_stream(int* dest, const int* source, size_t n, uint64_t* sig, uint64_t signal, int op, int pe,
    void* stream) {
  dprintf(1, "put_signal %llx %llx %zu %llx %llx %d %d %llx\\n", (unsigned long long)dest, (unsigned long long)source, n,
    (unsigned long long)sig, (unsigned long long)signal, op, pe, (unsigned long long)stream);
}
int nvshmemid_hostlib_init_attr(int requested, int* provided, unsigned flags, void* attr, Version version, void* callback) {
  *provided = requested + 1;
  dprintf(1, "hostlib %x %llx %d.%d.%d %llx\\n", flags, (unsigned long long)attr, version.major, version.minor, version.patch,
    (unsigned long long)callback);
  return -3;
}
`,
)
const run = (module: string) => runModule(module, { SHOAL_NVSHMEM_LIBRARY: library })

test('floats are passed and returned by value', () => {
  const lines = run(
    `import * as n from '@shoal/nvshmem-sys'
     n.nvshmem_float_p(0x10n, 1.5, 3)
     n.nvshmem_double_p(0x20n, -0.1, 4)
     n.nvshmemx_float_p_on_stream(null, 2.5, 5, n.cudaStream_t(0x77n))
     const cell = new Float64Array([1 / 3])
     console.log(n.nvshmem_float_g(new Float32Array([0.25]), 0), n.nvshmem_float_atomic_fetch(new Float32Array([-8]), 0))
     console.log(n.nvshmem_double_atomic_swap(cell, 1e300, 1) === 1 / 3, cell[0])`,
  )
  expect(lines).toEqual([
    'float_p 0x10 0x1.8p+0 3',
    'double_p 0x20 -0x1.999999999999ap-4 4',
    'p_on_stream 0x1.4p+1 5 77',
    '0.5 -8',
    'true 1e+300',
  ])
})

test('small integers are truncated and extended to their width', () => {
  const lines = run(
    `import * as n from '@shoal/nvshmem-sys'
     n.nvshmem_half_p(null, 0xfc01, 1)
     n.nvshmem_schar_p(null, -128, 2)
     console.log(n.nvshmem_char_g(new Int8Array([-2]), 0), n.nvshmem_short_g(new Int16Array([-3]), 0))
     console.log(n.nvshmem_ushort_g(new Uint16Array([65535]), 0), n.nvshmem_half_g(new Uint16Array([0xfc00]), 0).toString(16))
     const cell = new BigInt64Array([-5n])
     console.log(n.nvshmem_long_atomic_compare_swap(cell, -5, 2n ** 62n, 0), cell[0] === 2n ** 62n)`,
  )
  expect(lines).toEqual(['half_p (nil) fc01 1', 'schar_p -128 2', '-2 -3', '65535 fc00', '-5n true'])
})

test('eight arguments arrive, and a version by value between others', () => {
  const lines = run(
    `import * as n from '@shoal/nvshmem-sys'
     const { NVSHMEM_SIGNAL_ADD } = n.nvshmemx_signal_op_t
     n.nvshmemx_int_put_signal_on_stream(1n, 2n, 2 ** 40, 3n, 2n ** 64n - 1n, NVSHMEM_SIGNAL_ADD, -1, n.cudaStream_t(0x99n))
     const provided = new Int32Array(1)
     const version = n.nvshmemi_version_t.allocate({ major: 3, minor: 4, patch: 5 })
     console.log(n.nvshmemid_hostlib_init_attr(2, provided, 0xffffffff, 0x11n, version, 0x22n), provided[0])`,
  )
  expect(lines).toEqual([
    'put_signal 1 2 1099511627776 3 ffffffffffffffff 10 -1 99',
    'hostlib ffffffff 11 3.4.5 22',
    '-3 3',
  ])
})

test('a function newer than the library is refused with both versions, a missing one by name, with a stable error', () => {
  const lines = run(
    `import { nvshmem, nvshmem_quiet, nvshmemx_team_init } from '@shoal/nvshmem-sys'
     const catchTwice = (call) => {
       const errors = []
       for (let i = 0; i < 2; i++) try { call() } catch (error) { errors.push(error) }
       return errors[0] === errors[1] ? errors[0] : undefined
     }
     const late = catchTwice(() => nvshmemx_team_init(null, null, 0, 1, 0))
     console.log(nvshmem.versionText, late.name, late.api, late.since, late.installed)
     const lost = catchTwice(() => nvshmem_quiet())
     console.log(lost.name, lost.symbol)`,
  )
  expect(lines).toEqual([
    '3.2.5 VersionTooOldError nvshmemx_team_init 3.4.5 3.2.5',
    'SymbolNotFoundError nvshmem_quiet',
  ])
})

test('importing loads no library, searches none, and adds little to the FFI', () => {
  expectLightImport(new URL('../', import.meta.url), '@shoal/nvshmem-sys')
})
