import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { HelpRequest, UsageError } from '../src/command.js'
import { main } from '../src/index.js'
import { jobMarker, rankEnvironment } from '../src/run/environment.js'
import { type DeviceMap, type RunOptions, readRunOptions } from '../src/run/options.js'
import { programOf } from '../src/run/program.js'
import { describeEnd, isFailure, statusOf } from '../src/run/rank.js'

const defaults: RunOptions = {
  ...{ ranks: 2, onFailure: 'stop', deviceMap: 'rank', grace: 10_000, prefix: true, stdin: false, exec: false },
  ...{ nodeOptions: [], script: 'x.js', scriptArguments: [] },
}

describe('options of shoal run', () => {
  test.each<[string[], Partial<RunOptions>]>([
    [['-n', '2'], {}],
    [['-n2'], {}],
    [['-n=2'], {}],
    [['--ranks', '2'], {}],
    [['--ranks=2'], {}],
    [['-n', '1'], { ranks: 1 }],
    [['-n', '1024'], { ranks: 1024 }],
    [['-n', '3', '-n', '2'], {}],
    [['-n', '2', '--'], {}],
    [['-n', '2', '--on-failure', 'stop'], {}],
    [['-n', '2', '--on-failure=continue'], { onFailure: 'continue' }],
    [['-n', '2', '--device-map', 'rank'], {}],
    [['-n', '2', '--device-map', 'each'], { deviceMap: 'each' }],
    [['-n', '2', '--device-map', '3,9999'], { deviceMap: [3, 9999] }],
    [['-n', '2', '--device-map=2,1,0'], { deviceMap: [2, 1, 0] }],
    [['-n', '2', '--grace', '0'], { grace: 0 }],
    [['-n', '2', '--grace', '0.25'], { grace: 250 }],
    [['-n', '2', '--grace', '86400'], { grace: 86_400_000 }],
    [['-n', '2', '--no-prefix'], { prefix: false }],
    [['-n', '2', '--stdin'], { stdin: true }],
    [['-n', '2', '--exec'], { exec: true }],
    [['--enable-source-maps', '-n', '2'], { nodeOptions: ['--enable-source-maps'] }],
    [['-n', '2', '--title=a=b'], { nodeOptions: ['--title=a=b'] }],
    [['-n', '2', '--inspect'], { nodeOptions: ['--inspect'] }],
  ])('accept %j', (words, changed) => {
    expect(readRunOptions([...words, 'x.js'])).toEqual({ ...defaults, ...changed })
  })

  test('end at the script, whose arguments are passed unchanged', () => {
    const scriptArguments = ['-n', '3', '--help', '--', '-e']
    expect(readRunOptions(['-n', '2', 'x.js', ...scriptArguments])).toEqual({ ...defaults, scriptArguments })
    // Programs use this name for standard input.
    expect(readRunOptions(['-n', '2', '-', 'a'])).toEqual({ ...defaults, script: '-', scriptArguments: ['a'] })
    expect(readRunOptions(['-n', '2', '--', '-x.js'])).toEqual({ ...defaults, script: '-x.js' })
  })

  test.each([
    ...['-r', '--require', '--import', '--loader', '--experimental-loader', '-C', '--conditions', '--env-file'],
    ...['--env-file-if-exists', '--title', '--icu-data-dir', '--openssl-config', '--unhandled-rejections'],
    '--disable-warning',
  ])('take the word after %s as its value', (name) => {
    expect(readRunOptions(['-n', '2', name, 'value', 'x.js'])).toEqual({ ...defaults, nodeOptions: [name, 'value'] })
    const inline = [`${name}=value`]
    expect(readRunOptions(['-n', '2', ...inline, 'x.js'])).toEqual({ ...defaults, nodeOptions: inline })
    expect(() => readRunOptions(['-n', '2', name])).toThrow(`${name} needs a value`)
  })

  test.each(['-e', '--eval', '-p', '--print', '-i', '--interactive', '-c', '--check'])('need a script: %s', (name) => {
    expect(() => readRunOptions(['-n', '2', name, 'x.js'])).toThrow(`${name}: the ranks need a script file`)
  })

  test.each<[string[], string]>([
    [['-n', '1025', 'x.js'], "-n must be a whole number from 1 to 1024, not '1025'"],
    [['--ranks', '0', 'x.js'], "--ranks must be a whole number from 1 to 1024, not '0'"],
    [['-n', '1e2', 'x.js'], "-n must be a whole number from 1 to 1024, not '1e2'"],
    [['-n2x', 'x.js'], "-n must be a whole number from 1 to 1024, not '2x'"],
    [['-n', '2', '--grace', '86400.1', 'x.js'], "--grace must be a number of seconds from 0 to 86400, not '86400.1'"],
    [['-n', '2', '--grace', '-0.1', 'x.js'], "--grace must be a number of seconds from 0 to 86400, not '-0.1'"],
    [['-n', '2', '--grace', ' ', 'x.js'], "--grace must be a number of seconds from 0 to 86400, not ' '"],
    [['-n', '2', '--grace', 'long', 'x.js'], "--grace must be a number of seconds from 0 to 86400, not 'long'"],
    [['-n', '2', '--on-failure', 'go', 'x.js'], "--on-failure must be stop or continue, not 'go'"],
    [['-n', '2', '--device-map', '1,', 'x.js'], "--device-map must be rank, each or a list such as 2,3,0,1, not '1,'"],
    [['-n', '2', '--device-map', '10000,1', 'x.js'], '--device-map must be rank, each or a list'],
    [['-n', '4', '--device-map', '0,1,2,1', 'x.js'], '--device-map names device 1 twice; no two ranks can share one'],
    [['-n', '3', '--device-map', '0,1', 'x.js'], '--device-map names 2 devices for 3 ranks'],
    [['-n', '2', '--stdin=yes', 'x.js'], '--stdin takes no value'],
    [['-n', '2', '--exec=yes', 'x.js'], '--exec takes no value'],
    [['-n', '2', '--exec', '--title', 'a', 'x.js'], '--title: options of Node cannot be used with --exec'],
    [['-n', '2', '--'], 'the script is missing'],
  ])('refuse %j', (words, message) => {
    expect(() => readRunOptions(words)).toThrow(UsageError)
    expect(() => readRunOptions(words)).toThrow(message)
  })

  test('show --help despite missing options', () => {
    for (const words of [['--help'], ['-h'], ['-n', '2', '-h']])
      expect(() => readRunOptions(words)).toThrow(HelpRequest)
  })
})

describe('the environment of a rank', () => {
  const rendezvous = { address: 'tcp://127.0.0.1:5', secret: 'abc', nvshmemId: '/tmp/id', freePort: 77 }
  const common = {
    ...{ RANK: '1', LOCAL_RANK: '1', WORLD_SIZE: '3', LOCAL_WORLD_SIZE: '3', GROUP_RANK: '0' },
    ...{ MASTER_ADDR: '127.0.0.1', MASTER_PORT: '77', SHOAL_RENDEZVOUS: 'tcp://127.0.0.1:5', SHOAL_SECRET: 'abc' },
    ...{ SHOAL_NVSHMEM_ID: '/tmp/id' },
  }

  test.each<[DeviceMap, NodeJS.ProcessEnv, NodeJS.ProcessEnv]>([
    ['rank', {}, { SHOAL_DEVICE_ORDINAL: '1' }],
    ['rank', { CUDA_VISIBLE_DEVICES: '5,6' }, { SHOAL_DEVICE_ORDINAL: '1', CUDA_VISIBLE_DEVICES: '5,6' }],
    ['each', {}, { SHOAL_DEVICE_ORDINAL: '0', CUDA_VISIBLE_DEVICES: '1' }],
    ['each', { CUDA_VISIBLE_DEVICES: '5, 6 ' }, { SHOAL_DEVICE_ORDINAL: '0', CUDA_VISIBLE_DEVICES: '6' }],
    [[2, 0, 1], {}, { SHOAL_DEVICE_ORDINAL: '1', CUDA_VISIBLE_DEVICES: '2,0,1' }],
    [[1, 0], { CUDA_VISIBLE_DEVICES: 'a,b' }, { SHOAL_DEVICE_ORDINAL: '1', CUDA_VISIBLE_DEVICES: 'b,a' }],
    // A rank gets new values for the variables that an outer job has set.
    ['rank', { RANK: '9', SHOAL_DEVICE_ORDINAL: '9', OTHER: 'x' }, { SHOAL_DEVICE_ORDINAL: '1', OTHER: 'x' }],
    ['each', { SHOAL_DEVICE: 'sim' }, { SHOAL_DEVICE: 'sim', SHOAL_DEVICE_ORDINAL: '1', SHOAL_SIM_DEVICES: '3' }],
    [
      'rank',
      { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '8' },
      { SHOAL_DEVICE: 'sim', SHOAL_DEVICE_ORDINAL: '1', SHOAL_SIM_DEVICES: '8' },
    ],
  ])('has %j with %j', (map, inherited, own) => {
    expect(rankEnvironment(1, 3, map, rendezvous, inherited)).toEqual({ ...common, ...own })
  })

  test('has two software devices for one rank, as all programs do', () => {
    const sim = { SHOAL_DEVICE: 'sim' }
    expect(rankEnvironment(0, 1, 'rank', rendezvous, sim)).toMatchObject({ SHOAL_SIM_DEVICES: '2' })
  })

  test.each([
    ['each', '5', 1],
    ['each', '5,', 1],
    [[0, 2], '5,6', 2],
    [[0], '', 0],
  ] as const)('lacks a device: %j of CUDA_VISIBLE_DEVICES=%j has no device %d', (map, visible, missing) => {
    expect(() => rankEnvironment(1, 2, map, rendezvous, { CUDA_VISIBLE_DEVICES: visible })).toThrow(
      `--device-map asks for device ${missing}, and CUDA_VISIBLE_DEVICES is '${visible}'`,
    )
  })

  test('has the variable that marks the processes of a job', () => {
    expect(jobMarker(rendezvous)).toBe('SHOAL_RENDEZVOUS=tcp://127.0.0.1:5')
  })
})

describe('the command line of a rank', () => {
  const folder = mkdtempSync(join(tmpdir(), 'shoal-program-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const file = (name: string): string => {
    writeFileSync(join(folder, name), '')
    return join(folder, name)
  }

  test.each([
    ['--inspect', '--inspect=9229', '--inspect=9232'],
    ['--inspect-brk', '--inspect-brk=9229', '--inspect-brk=9232'],
    ['--inspect-wait', '--inspect-wait=9229', '--inspect-wait=9232'],
    ['--inspect-port=1000', '--inspect-port=1000', '--inspect-port=1003'],
    ['--inspect=1000', '--inspect=1000', '--inspect=1003'],
    ['--inspect=0', '--inspect=0', '--inspect=0'],
    ['--inspect=1.2.3.4', '--inspect=1.2.3.4:9229', '--inspect=1.2.3.4:9232'],
    ['--inspect=1.2.3.4:1', '--inspect=1.2.3.4:1', '--inspect=1.2.3.4:4'],
    ['--inspect=[::1]:7', '--inspect=[::1]:7', '--inspect=[::1]:10'],
    ['--inspect=host:0', '--inspect=host:0', '--inspect=host:0'],
    ['--inspect-publish-uid=http', '--inspect-publish-uid=http', '--inspect-publish-uid=http'],
    ['--title=x', '--title=x', '--title=x'],
  ])('adjusts the option %s per rank', (option, first, fourth) => {
    const script = file('x.mjs')
    const options = { ...defaults, script, nodeOptions: [option], scriptArguments: ['a', '--inspect'] }
    const { file: program, argumentsOf } = programOf(options)
    expect(program).toBe(process.execPath)
    expect(argumentsOf(0)).toEqual([first, script, 'a', '--inspect'])
    expect(argumentsOf(3)).toEqual([fourth, script, 'a', '--inspect'])
  })

  test('starts the program named with --exec, wherever it is', () => {
    const options = { ...defaults, exec: true, script: 'nowhere', scriptArguments: ['--inspect'] }
    expect(programOf(options).file).toBe('nowhere')
    expect(programOf(options).argumentsOf(3)).toEqual(['--inspect'])
  })

  describe('with a TypeScript script', () => {
    const strip = '--experimental-strip-types'

    /** Returns the arguments before the script, for a Node with these features. */
    function before(script: string, features: unknown, flags: readonly string[]): string[] {
      vi.spyOn(Reflect, 'get').mockReturnValue(features)
      vi.spyOn(process, 'allowedNodeEnvironmentFlags', 'get').mockReturnValue(new Set(flags))
      try {
        return programOf({ ...defaults, script })
          .argumentsOf(0)
          .slice(0, -1)
      } finally {
        // Restore at once, because Vitest inspects objects with the same function.
        vi.restoreAllMocks()
      }
    }

    test.each(['x.ts', 'x.mts', 'x.cts'])('recognizes the name %s', (name) => {
      const script = file(name)
      expect(before(script, 'strip', [strip])).toEqual([])
      expect(before(script, false, [strip])).toEqual([strip])
      expect(before(script, undefined, [strip])).toEqual([strip])
      expect(() => before(script, undefined, [])).toThrow(UsageError)
      expect(() => before(script, undefined, [])).toThrow(
        /^Node v.* cannot run .*: take Node 22\.6 or later, install tsx \(npm install tsx\), or compile it$/,
      )
    })

    test.each(['x.js', 'x.tsx', 'ts', 'x.ts.js'])('does not recognize the name %s', (name) => {
      expect(before(file(name), undefined, [])).toEqual([])
    })

    test('uses tsx next to the script if Node cannot run TypeScript', () => {
      const tsx = join(folder, 'node_modules/tsx')
      mkdirSync(tsx, { recursive: true })
      writeFileSync(join(tsx, 'tsx.mjs'), '')
      writeFileSync(join(tsx, 'package.json'), '{"name":"tsx","main":"tsx.mjs"}')
      expect(before(file('x.ts'), undefined, [])).toEqual(['--import', pathToFileURL(join(tsx, 'tsx.mjs')).href])
      expect(before(file('x.ts'), undefined, [strip])).toEqual([strip])
    })

    test('reports the error of a broken tsx', () => {
      // A separate folder, because Node caches package files.
      const tsx = join(folder, 'broken/node_modules/tsx')
      mkdirSync(tsx, { recursive: true })
      writeFileSync(join(tsx, 'package.json'), '{"name":"tsx","exports":{"./other":"./other.js"}}')
      expect(() => before(file('broken/x.ts'), undefined, [])).toThrow(
        /or compile it \(tsx is there and cannot be used: .*exports/,
      )
    })
  })
})

describe('the end of a rank', () => {
  const missing = Object.assign(new Error('spawn x ENOENT'), { code: 'ENOENT' })
  const denied = Object.assign(new Error('spawn x EACCES'), { code: 'EACCES' })

  test.each([
    [{ code: 0, signal: null }, false, 0, 'ended with exit status 0'],
    [{ code: 7, signal: null }, true, 7, 'ended with exit status 7'],
    [{ code: null, signal: 'SIGKILL' as const }, true, 137, 'was killed by SIGKILL'],
    [{ code: null, signal: 'SIGTERM' as const }, true, 143, 'was killed by SIGTERM'],
    [{ code: null, signal: null, error: missing }, true, 127, 'did not start: spawn x ENOENT'],
    [{ code: null, signal: null, error: denied }, true, 126, 'did not start: spawn x EACCES'],
  ])('is described by %j', (how, failed, status, words) => {
    const end = { rank: 1, ...how }
    expect([isFailure(end), statusOf(end), describeEnd(end)]).toEqual([failed, status, words])
  })
})

describe('the program shoal', () => {
  afterEach(() => void vi.restoreAllMocks())

  async function shoal(...words: string[]) {
    const log = vi.spyOn(console, 'log').mockImplementation(() => undefined)
    const error = vi.spyOn(console, 'error').mockImplementation(() => undefined)
    const status = await main(words)
    const told = (spy: typeof log): string => spy.mock.calls.flat().join('\n')
    return { status, output: told(log), errors: told(error) }
  }

  test('prints its commands for help, and a usage error without a command', async () => {
    const words = expect.stringMatching(
      /^usage: shoal COMMAND …\n\n {2}run {6}start .*\n {2}doctor {3}report .*\n {2}bench {4}measure .*\n\nshoal COMMAND/,
    )
    for (const word of ['--help', '-h', 'help']) {
      expect(await shoal(word)).toEqual({ status: 0, output: words, errors: '' })
      vi.restoreAllMocks()
    }
    expect(await shoal()).toEqual({ status: 2, output: words, errors: '' })
  })

  test.each(['dance', 'constructor', '-n'])('refuses the command %s', async (name) => {
    const { status, output, errors } = await shoal(name)
    expect([status, output]).toEqual([2, ''])
    expect(errors).toMatch(new RegExp(`^shoal: there is no command '${name}'\nusage: shoal COMMAND …\n`))
  })

  test.each(['--version', '-v'])('%s', async (word) => {
    expect(await shoal(word)).toEqual({ status: 0, output: expect.stringMatching(/^\d+\.\d+\.\d+/), errors: '' })
  })

  test.each(['run', 'doctor', 'bench'])('%s --help prints the usage', async (name) => {
    const { status, output, errors } = await shoal(name, '--help')
    expect([status, errors]).toEqual([0, ''])
    expect(output).toMatch(new RegExp(`^usage: shoal ${name} `))
    vi.restoreAllMocks()
    const wrong = await shoal(name, '--on-failure')
    expect([wrong.status, wrong.output]).toEqual([2, ''])
    expect(wrong.errors).toMatch(new RegExp(`^shoal ${name}: .*\nshoal ${name} --help tells how to use it\\.$`))
  })

  test('rethrows internal errors', async () => {
    const fault = new Error('a fault')
    const { runCommand } = await import('../src/run/command.js')
    vi.spyOn(runCommand, 'run').mockRejectedValue(fault)
    await expect(shoal('run')).rejects.toBe(fault)
  })
})
