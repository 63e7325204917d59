import { sharing, socketPath } from './sharing.js'
import { general, type Subject } from './subject.js'

export async function ffiSubject(): Promise<Subject> {
  const ffi = await import('@shoal/ffi')
  const libc = ffi.defineLibrary({
    id: 'junk',
    title: 'libc',
    environment: 'SHOAL_JUNK_LIBRARY',
    linux: [],
    hint: 'none',
  })
  const memory = (): import('@shoal/ffi').NativeMemory => ffi.NativeMemory.allocate(64)
  return {
    module: ffi,
    instances: {
      NativeLibrary: () => libc,
      NativeMemory: memory,
      Lane: () => ffi.createLane(),
      DescriptorServer: () => ffi.DescriptorServer.listen(socketPath()),
      DescriptorSocket: () => ffi.DescriptorSocket.pair()[0],
    },
    values: {
      ...general,
      ...sharing(ffi),
      '#context': () => 0n,
      '#previous': () => undefined,
      '#descriptor': () => 10_000,
      '#view': () => new Uint8Array(8),
      '#address': () => memory().address,
      'NativeMemory.allocate#byteLength': () => 64,
      'readMemory#byteLength': () => 8,
      'hostView#byteLength': () => 8,
      'textIn#bytes': () => new Uint8Array(8),
      '#symbol': () => 'getpid',
      'NativeLibrary.rawSymbol#name': () => 'getpid',
      '#since': () => 0,
      '#layout': () => 0,
      'NativeLibrary.bindBig#result': () => 'u64',
      'NativeLibrary.bindStruct#byteLength': () => 8,
      'NativeLibrary.function#signature': () => ({ parameters: [], result: 'i32' }),
      'NativeLibrary.bindForeign#prototype': () => 'int getpid()',
      'NativeLibrary.setPath#path': () => '/lib/libc.so.6',
      '#call': () => () => undefined,
      'onAbort#signal': () => new AbortController().signal,
      '#lane': () => ffi.createLane(),
      '#record': () => () => undefined,
      'defineStructCodec#layout': () => ({
        name: 's',
        size: 8,
        align: 4,
        fields: [{ name: 'x', offset: 0, type: 'i32' }],
      }),
      'offThread#options': () => ({ results: 'value' }),
      '#results': () => 'value',
      '#query': () => ({ context: 0n, event: 0n, query: 0n, notReady: 600 }),
      '#getCurrent': () => 0n,
      '#setCurrent': () => 0n,
    },
    foreignObjects: {},
  }
}
