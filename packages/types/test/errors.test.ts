import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import {
  AbortedError,
  AddonLoadError,
  DisposedError,
  FeatureNotSupportedError,
  formatLoadAttempts,
  isStickyCudaStatus,
  LibraryNotFoundError,
  type LoadAttempt,
  ShoalError,
  StatusError,
  SymbolNotFoundError,
  SystemError,
  TimeoutError,
  VersionTooNewError,
  VersionTooOldError,
} from '@shoal/types'
import { describe, expect, it } from 'vitest'
import { cudaInclude } from './toolchain.js'

const attempts: readonly LoadAttempt[] = [
  { step: 'environment', candidate: '/opt/libnccl.so', outcome: 'not there' },
  { step: 'loader', candidate: 'libnccl.so.2', outcome: 'invalid ELF header\nsecond line' },
]
const cause = new RangeError('below')

const samples = [
  [
    new StatusError({
      library: 'NCCL',
      api: 'ncclAllReduce',
      status: 6,
      code: 'ncclRemoteError',
      description: 'remote process exited',
      isSticky: true,
      lastError: 'connection closed by peer',
      libraryVersion: '2.30.7',
      cause,
    }),
    {
      name: 'StatusError',
      code: 'ncclRemoteError',
      library: 'NCCL',
      api: 'ncclAllReduce',
      status: 6,
      description: 'remote process exited',
      isSticky: true,
      lastError: 'connection closed by peer',
      libraryVersion: '2.30.7',
      cause: { name: 'RangeError', message: 'below' },
    },
  ],
  [
    new LibraryNotFoundError({ library: 'NCCL', attempts, hint: 'Install it.', environment: 'SHOAL_NCCL_LIBRARY' }),
    {
      name: 'LibraryNotFoundError',
      code: 'SHOAL_LIBRARY_NOT_FOUND',
      library: 'NCCL',
      attempts,
      hint: 'Install it.',
      environment: 'SHOAL_NCCL_LIBRARY',
    },
  ],
  [
    new SymbolNotFoundError({ library: 'CUDA driver', symbol: 'cuNothing', path: '/lib/libcuda.so.1' }),
    {
      name: 'SymbolNotFoundError',
      code: 'SHOAL_SYMBOL_NOT_FOUND',
      library: 'CUDA driver',
      symbol: 'cuNothing',
      path: '/lib/libcuda.so.1',
    },
  ],
  [
    new VersionTooOldError({ library: 'NCCL', api: 'ncclCommGrow', since: '2.29.0', installed: '2.28.9' }),
    {
      name: 'VersionTooOldError',
      code: 'SHOAL_VERSION_TOO_OLD',
      library: 'NCCL',
      api: 'ncclCommGrow',
      since: '2.29.0',
      installed: '2.28.9',
    },
  ],
  [
    new VersionTooNewError({ library: 'CUDA runtime', api: 'cudaMemAdvise', known: '13.0', installed: '14.1' }),
    {
      name: 'VersionTooNewError',
      code: 'SHOAL_VERSION_TOO_NEW',
      library: 'CUDA runtime',
      api: 'cudaMemAdvise',
      known: '13.0',
      installed: '14.1',
    },
  ],
  [
    new FeatureNotSupportedError({
      library: 'CUDA driver',
      api: 'multicast objects',
      reason: 'device 0 has none.',
    }),
    {
      name: 'FeatureNotSupportedError',
      code: 'SHOAL_FEATURE_NOT_SUPPORTED',
      library: 'CUDA driver',
      api: 'multicast objects',
      reason: 'device 0 has none.',
    },
  ],
  [
    new DisposedError({ object: 'Stream', operation: 'synchronize' }),
    { name: 'DisposedError', code: 'SHOAL_DISPOSED', object: 'Stream', operation: 'synchronize' },
  ],
  [
    new AddonLoadError({ attempts, platform: 'linux-x64-glibc' }),
    { name: 'AddonLoadError', code: 'SHOAL_ADDON_NOT_LOADED', attempts, platform: 'linux-x64-glibc' },
  ],
  [
    new AbortedError({ operation: 'stream.synchronize', cause: 'user left' }),
    { name: 'AbortedError', code: 'SHOAL_ABORTED', operation: 'stream.synchronize', cause: 'user left' },
  ],
  [
    new TimeoutError({ operation: 'stream.synchronize', timeout: 250 }),
    { name: 'TimeoutError', code: 'SHOAL_TIMEOUT', operation: 'stream.synchronize', timeout: 250 },
  ],
] as const

describe.each(samples)('%o', (error, json) => {
  it('is an Error of its own class, named in its stack', () => {
    expect(error).toBeInstanceOf(ShoalError)
    expect(error).toBeInstanceOf(Error)
    expect(error.name).toBe(json.name)
    expect(error.stack?.startsWith(`${json.name}: `)).toBe(true)
    expect(Object.keys(error)).not.toContain('name')
  })

  it('has a code, shown with the message', () => {
    expect(String(error)).toBe(`${json.name} [${json.code}]: ${error.message}`)
  })

  it('is plain data as JSON', () => {
    expect(JSON.parse(JSON.stringify(error))).toEqual({ ...json, message: error.message })
  })

  it('shows its fields when printed, and no field that was not given', () => {
    const printed = inspect(error)
    for (const field of Object.keys(error)) expect(printed).toContain(`${field}:`)
    expect(printed).not.toContain('undefined')
  })
})

describe('messages', () => {
  it('of an aborted wait take a reason whose message is no text', () => {
    for (const message of [5, Symbol('why'), null, { toString: 1 }]) {
      const cause = Object.assign(new Error('x'), { message })
      expect(new AbortedError({ operation: 'f', cause }).message).toMatch(/^f was aborted by its signal\. Work/)
    }
  })

  it('name the function, the status and the words of the library', () => {
    const { message } = samples[0][0]
    expect(message).toContain('ncclAllReduce failed: ncclRemoteError (6): remote process exited')
    expect(message).toContain('NCCL says: connection closed by peer')
    expect(message).toContain('sticky')
    const plain = new StatusError({ library: 'CUDA driver', api: 'cuInit', status: 100, code: 'X', description: '' })
    expect(plain.message).toBe('cuInit failed: X (100)')
    expect(plain.isSticky).toBe(false)
  })

  it('list everything that was tried and the ways out', () => {
    const { message } = samples[1][0]
    for (const { candidate } of attempts) expect(message).toContain(candidate)
    for (const words of ['not there', 'invalid ELF header', 'second line', 'Install it.', 'SHOAL_NCCL_LIBRARY=']) {
      expect(message).toContain(words)
    }
    expect(message).toContain('SHOAL_DEVICE=sim')
  })

  it('align the attempts and keep long outcomes in their column', () => {
    expect(formatLoadAttempts(attempts)).toBe(
      [
        '  environment  /opt/libnccl.so: not there',
        '  loader       libnccl.so.2: invalid ELF header',
        '                 second line',
      ].join('\n'),
    )
    expect(formatLoadAttempts([])).toContain('nothing was tried')
  })

  it('say how to get the addon, with advice for the case first', () => {
    const { message } = new AddonLoadError({ attempts, hints: ['This system has musl; glibc is needed.'] })
    const advice = message.slice(message.indexOf('What to do:'))
    expect(advice.split('\n')[1]).toContain('musl')
    for (const words of ['Reinstall @shoal/ffi', 'node-api-headers', 'make -C', 'SHOAL_FFI_ADDON=']) {
      expect(advice).toContain(words)
    }
    expect(message).toContain(`${process.platform}-${process.arch}`)
  })

  it('take a bare name where that is all there is', () => {
    expect(new DisposedError('DeviceBuffer')).toMatchObject({ object: 'DeviceBuffer' })
    expect(new AbortedError('copy').message).toContain('copy was aborted')
    const why = (cause: unknown) => new AbortedError({ operation: 'copy', cause }).message
    expect(why(new Error('rank 3 was lost.'))).toMatch(/^copy was aborted by its signal: rank 3 was lost\. Work/)
    expect(why('enough')).toMatch(/^copy was aborted by its signal: enough\. Work/)
    for (const plain of [undefined, 7, AbortSignal.abort().reason])
      expect(why(plain)).toMatch(/^copy was aborted by its signal\. Work/)
    expect(new TimeoutError().message).toContain('did not end within its time limit')
    expect(new AbortedError().message).toContain('The wait was aborted')
  })

  it('carry the cause', () => {
    expect(samples[0][0].cause).toBe(cause)
    expect(Object.hasOwn(new DisposedError('Event'), 'cause')).toBe(false)
    const outer = new AbortedError({ cause: new DisposedError('Event') })
    expect(outer.toJSON()).toMatchObject({ cause: { code: 'SHOAL_DISPOSED', object: 'Event' } })
  })
})

describe('SystemError', () => {
  it('has the code of the system, and says what was called with what', () => {
    const cause = Object.assign(new Error('EISDIR: illegal operation on a directory, read'), { code: 'EISDIR' })
    const error = new SystemError({ api: 'Module.loadFile', parameter: 'path', value: '/tmp', cause })
    expect(error.message).toBe(
      "Module.loadFile: path '/tmp' is refused by the system: EISDIR: illegal operation on a directory, read",
    )
    expect(error.cause).toBe(cause)
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      name: 'SystemError',
      code: 'EISDIR',
      message: error.message,
      api: 'Module.loadFile',
      parameter: 'path',
      value: '/tmp',
      cause: { name: 'Error', message: cause.message },
    })
    expect(new SystemError({ api: 'f', parameter: 'p', value: 'v', cause: 'why' }).code).toBe('SHOAL_SYSTEM')
  })
})

describe('isStickyCudaStatus', () => {
  it('tells lost contexts from failures that leave the context whole', () => {
    for (const status of [700, 710, 719]) expect(isStickyCudaStatus(status)).toBe(true)
    for (const status of [0, 1, 2, 201, 400, 600, 701, 720]) expect(isStickyCudaStatus(status)).toBe(false)
  })

  it('agrees with what cuda.h documents of each status', ({ skip }) => {
    const include = cudaInclude()
    if ('reason' in include) return skip(include.reason)
    const file = join(include.folder, 'cuda.h')
    expect(existsSync(file)).toBe(true)
    const text = readFileSync(file, 'utf8')
    const body = text.slice(text.indexOf('typedef enum cudaError_enum'), text.indexOf('} CUresult'))
    const statuses = [...body.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(CUDA_\w+)\s*=\s*(\d+)/g)]
    expect(statuses.length).toBeGreaterThan(80)
    const mismatches = statuses.filter(([, comment = '', , status]) => {
      const words = comment.replace(/[\s*]+/g, ' ')
      const lost = /process must be terminated|cannot be used anymore/.test(words)
      return lost !== isStickyCudaStatus(Number(status))
    })
    expect(mismatches.map(([, , name]) => name)).toEqual([])
  })
})
