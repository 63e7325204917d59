import { expect, test } from 'vitest'
import { expectLightImport } from '../../ffi/test/support/importing.js'
import { compileStub, moduleRunner } from '../../ffi/test/support/stub.js'

const runModule = moduleRunner(new URL('../', import.meta.url))

// A replacement for an NCCL that is older than some functions.
const library = compileStub(
  'nccl',
  `
typedef struct { char internal[128]; } Id;
int ncclGetVersion(int* version) { *version = 21805; return 0; }
int ncclCommInitRank(void** comm, int nranks, Id id, int rank) {
  int sum = 0;
  for (int i = 0; i < 128; i++) sum += (unsigned char)id.internal[i];
  *comm = (void*)0x77; dprintf(1, "init %d %d of id %d\\n", rank, nranks, sum); return 0;
}
int ncclAllReduce(const void* send, void* receive, size_t count, int type, int op, void* comm, void* stream) {
  dprintf(1, "reduce %llx %llx %zu %d %d %llx %llx\\n", (unsigned long long)send, (unsigned long long)receive, count, type, op,
    (unsigned long long)comm, (unsigned long long)stream);
  return 7;
}
void ncclParamDumpAll(void) { dprintf(1, "dump\\n"); }
`,
)
const run = (module: string) => runModule(module, { SHOAL_NCCL_LIBRARY: library })

test('arguments arrive in C, the unique id by value', () => {
  const lines = run(
    `import * as n from '@shoal/nccl-sys'
     const comm = new BigUint64Array(1)
     n.ncclCommInitRank(comm, 4, new Uint8Array(128).fill(2), 3)
     console.log(comm[0])
     const type = n.ncclDataType_t.ncclBfloat16, op = n.ncclRedOp_t.ncclMax
     console.log(n.ncclAllReduce(0x10n, 0x20n, 2 ** 40, type, op, n.ncclComm_t(comm[0]), null) === n.ncclResult_t.ncclInProgress)
     console.log(n.ncclParamDumpAll())`,
  )
  expect(lines).toEqual([
    'init 3 4 of id 256',
    '119n',
    'reduce 10 20 1099511627776 9 2 77 0',
    'true',
    'dump',
    'undefined',
  ])
})

test('a function newer than the library is refused with both versions, with the same error each time', () => {
  const lines = run(
    `import { ncclMemAlloc } from '@shoal/nccl-sys'
     const errors = []
     for (let i = 0; i < 2; i++) try { ncclMemAlloc(new BigUint64Array(1), 8) } catch (error) { errors.push(error) }
     console.log(errors[0].name, errors[0].api, errors[0].since, errors[0].installed, errors[0] === errors[1])`,
  )
  expect(lines).toEqual(['VersionTooOldError ncclMemAlloc 2.19.3 2.18.5 true'])
})

test('a function missing in a library that should have it is refused by name', () => {
  const lines = run(
    `import { ncclSend } from '@shoal/nccl-sys'
     try { ncclSend(null, 0, 0, 0, null, null) } catch (error) { console.log(error.name, error.symbol) }`,
  )
  expect(lines).toEqual(['SymbolNotFoundError ncclSend'])
})

test('importing loads no library, searches none, and adds little to the FFI', () => {
  expectLightImport(new URL('../', import.meta.url), '@shoal/nccl-sys')
})
