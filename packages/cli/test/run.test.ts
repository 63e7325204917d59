import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import {
  children,
  expectEnded,
  folder,
  isAlive,
  linesOf,
  pidsIn,
  ranks,
  run,
  shoal,
  sleep,
  start,
} from './support/run.js'

describe('shoal run passes to its ranks', () => {
  test('the variables of torchrun, and their arguments', async () => {
    const { code, output } = await run(['-n', '3', ranks, 'variables', '-n', '--flag'])
    expect(code).toBe(0)
    const all = linesOf(output).map((line) => {
      const [, rank, json] = /^\[(\d)\] (.*)$/.exec(line)!
      return { line: rank, ...(JSON.parse(json!) as Record<string, unknown>) } as Record<string, unknown>
    })
    all.sort((a, b) => Number(a['RANK']) - Number(b['RANK']))
    expect(all).toHaveLength(3)
    for (const [rank, one] of all.entries()) {
      expect(one).toMatchObject({
        line: String(rank),
        RANK: String(rank),
        LOCAL_RANK: String(rank),
        WORLD_SIZE: '3',
        LOCAL_WORLD_SIZE: '3',
        GROUP_RANK: '0',
        MASTER_ADDR: '127.0.0.1',
        SHOAL_DEVICE_ORDINAL: String(rank),
        argv: ['-n', '--flag'],
      })
      expect(one['CUDA_VISIBLE_DEVICES']).toBeUndefined()
      expect(Number(one['MASTER_PORT'])).toBeGreaterThan(0)
    }
    expect(new Set(all.map((one) => one['MASTER_PORT'])).size).toBe(1)
  })

  test('a secret that appears in no command line', async () => {
    const { code, output } = await run(['-n', '2', '--no-prefix', ranks, 'secrets'])
    expect(linesOf(output)).toEqual(Array(2).fill('secret of 64 digits, seen: false'))
    expect(code).toBe(0)
  })

  test.each<[string, string[], NodeJS.ProcessEnv, (string | undefined)[], string[]]>([
    ['all devices', [], {}, [undefined, undefined], ['0', '1']],
    ['one device each', ['--device-map', 'each'], {}, ['0', '1'], ['0', '0']],
    ['one each of some', ['--device-map=each'], { CUDA_VISIBLE_DEVICES: '5, GPU-77' }, ['5', 'GPU-77'], ['0', '0']],
    ['a list', ['--device-map', '3,1'], {}, ['3,1', '3,1'], ['0', '1']],
    ['a list of some', ['--device-map', '1,0'], { CUDA_VISIBLE_DEVICES: '6,7' }, ['7,6', '7,6'], ['0', '1']],
  ])('%s', async (_, options, environment, visible, ordinals) => {
    const { code, output } = await run(['-n', '2', '--no-prefix', ...options, ranks, 'variables'], environment)
    const all = linesOf(output).map((line) => JSON.parse(line) as Record<string, string>)
    all.sort((a, b) => Number(a['RANK']) - Number(b['RANK']))
    expect(all.map((one) => one['CUDA_VISIBLE_DEVICES'])).toEqual(visible)
    expect(all.map((one) => one['SHOAL_DEVICE_ORDINAL'])).toEqual(ordinals)
    expect(code).toBe(0)
  })

  test('as many software devices as ranks', async () => {
    const map = ['--device-map', 'each', '--no-prefix']
    const one = await run(['-n', '3', ...map, ranks, 'variables'], { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '' })
    const all = linesOf(one.output).map((line) => JSON.parse(line) as Record<string, string>)
    expect(all.map((rank) => [rank['SHOAL_SIM_DEVICES'], rank['SHOAL_DEVICE_ORDINAL']]).sort()).toEqual([
      ['3', '0'],
      ['3', '1'],
      ['3', '2'],
    ])
  })

  test('options of Node that precede the script', async () => {
    const options = ['--max-old-space-size=300', '--conditions', 'special', '--inspect=127.0.0.1:0']
    const { code, output } = await run(['-n', '2', '--no-prefix', ...options, ranks, 'variables'])
    expect(code).toBe(0)
    for (const line of linesOf(output)) {
      expect(JSON.parse(line)).toMatchObject({ execArgv: options, argv: [] })
    }
  })

  test('no standard input, or to rank 0 the input of shoal run', async () => {
    const none = await run(['-n', '2', ranks, 'input'], {}, 'some words')
    expect(linesOf(none.output).sort()).toEqual(['[0] read ""', '[1] read ""'])
    const some = await run(['-n', '2', '--stdin', ranks, 'input'], {}, 'some words')
    expect(linesOf(some.output).sort()).toEqual(['[0] read "some words"', '[1] read ""'])
    expect(some.code).toBe(0)
  })
})

describe('shoal run starts programs', () => {
  test('that are not Node scripts', async () => {
    const { code, output } = await run(['-n', '2', '--exec', 'sh', '-c', 'echo rank $RANK of $WORLD_SIZE'])
    expect(linesOf(output).sort()).toEqual(['[0] rank 0 of 2', '[1] rank 1 of 2'])
    expect(code).toBe(0)
  })

  test('that do not exist, with an error', async () => {
    const { code, errors } = await run(['-n', '2', '--exec', './no-such-program'])
    expect(errors).toContain('did not start')
    expect(code).toBe(127)
  })

  test('that exceed the number of descriptors, with an error', async () => {
    // The limit is for a system on which Node and a few ranks can start.
    const words = ['-c', 'ulimit -n 64; exec "$@"', 'sh', process.execPath, shoal, 'run', '-n', '40', '--exec', 'sleep']
    const seconds = `601.${process.pid}`
    const { status, stderr } = spawnSync('sh', [...words, seconds], { encoding: 'utf8', timeout: 300_000 })
    expect(stderr).toMatch(/^shoal run: rank \d+ did not start: spawn sleep EMFILE; the others are being ended$/m)
    expect(stderr).not.toContain('    at ')
    expect(status).toBe(126)
    const running = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
    expect(running.split('\n').filter((line) => line === `sleep ${seconds}`)).toEqual([])
  })

  test('in TypeScript, or explains the missing support', async () => {
    const script = join(folder, 'typed.mts')
    writeFileSync(script, 'const rank: string = process.env["RANK"]!\nconsole.log("typed", rank as string)\n')
    const { code, output, errors } = await run(['-n', '2', script], { NODE_NO_WARNINGS: '1' })
    const canStrip = process.allowedNodeEnvironmentFlags.has('--experimental-strip-types')
    if (canStrip) {
      expect(errors).toBe('')
      expect(linesOf(output).sort()).toEqual(['[0] typed 0', '[1] typed 1'])
      expect(code).toBe(0)
    } else {
      expect(errors).toContain('take Node 22.6 or later, install tsx (npm install tsx), or compile it')
      expect(code).toBe(2)
    }
  })

  test('in TypeScript, by tsx if it is installed', async (context) => {
    if (process.allowedNodeEnvironmentFlags.has('--experimental-strip-types')) {
      return context.skip('this Node strips types itself')
    }
    const { mkdirSync } = await import('node:fs')
    mkdirSync(join(folder, 'node_modules/tsx'), { recursive: true })
    writeFileSync(join(folder, 'node_modules/tsx/package.json'), '{"name":"tsx","main":"tsx.mjs"}')
    // Replaces the package, which only has to be loaded before the script.
    writeFileSync(join(folder, 'node_modules/tsx/tsx.mjs'), "console.log('tsx is there'); process.exit(0)\n")
    writeFileSync(join(folder, 'typed.ts'), 'const one: number = 1\n')
    const { code, output } = await run(['-n', '1', join(folder, 'typed.ts')])
    expect(output).toBe('[0] tsx is there\n')
    expect(code).toBe(0)
  })
})

describe('output of ranks under shoal run', () => {
  test('stays in whole lines, however it arrives', async () => {
    const count = 3_000
    const { code, output } = await run(['-n', '11', ranks, 'lines', String(count)])
    expect(code).toBe(0)
    const next = Array(11).fill(0) as number[]
    for (const line of linesOf(output)) {
      const [, prefix, rank, number, rest] = /^\[([ \d]\d)\] (\d+):(\d+):(.*);$/.exec(line) ?? []
      if (Number(prefix) !== Number(rank) || next[Number(rank)] !== Number(number)) throw new Error(line)
      if (rest !== `é${rank}`.repeat(Number(number) % 40)) throw new Error(line)
      next[Number(rank)]! += 1
    }
    expect(next).toEqual(Array(11).fill(count))
  })

  test('keeps text without a line end, and both streams separate', async () => {
    const { output, errors } = await run(['-n', '2', ranks, 'partial'])
    expect(linesOf(output).sort()).toEqual(['[0] no end', '[1] no end'])
    expect(linesOf(errors).sort()).toEqual(['[0] no end either', '[1] no end either'])
    const bare = await run(['-n', '2', '--no-prefix', ranks, 'partial'])
    expect(bare.output).toBe('no end\nno end\n')
  })

  test('is cut if lines do not end', async () => {
    const { code, output } = await run(['-n', '1', ranks, 'long'])
    const lines = linesOf(output)
    expect(lines.length).toBeGreaterThanOrEqual(3)
    expect(lines.every((line) => line.startsWith('[0] x'))).toBe(true)
    expect(lines.map((line) => line.length - 4).reduce((a, b) => a + b)).toBe(3 * 2 ** 20)
    expect(code).toBe(0)
  })

  test('waits for a slow reader, also after the ranks have ended', async () => {
    const one = start(['-n', '2', ranks, 'lines', '20000'])
    one.child.stdout!.pause()
    await sleep(4_000)
    one.child.stdout!.resume()
    const { code, output } = await one.end
    expect(linesOf(output)).toHaveLength(40_000)
    expect(code).toBe(0)
  })

  test('from a process that outlives its rank is dropped', async () => {
    // It moves to a separate process group and keeps the output open.
    const command = 'setsid sleep 600 & echo pid $! ready; sleep 0.5'
    const { code, output } = await run(['-n', '1', '--exec', 'sh', '-c', command])
    expect(code).toBe(0)
    for (const pid of pidsIn(output)) if (isAlive(pid)) process.kill(pid, 'SIGKILL')
  })

  test('ends the job if its reader stops reading, and exits while the ranks wait for it', async () => {
    const child = spawn(process.execPath, [shoal, 'run', '-n', '2', ranks, 'lines', '200000'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    children.push(child)
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => {
      errors += chunk
    })
    // The pipe takes output until it is full. Then all output stops.
    await once(child.stdout, 'readable')
    await sleep(1000)
    child.stdout.destroy()
    const [code] = await once(child, 'exit')
    expect(code).toBe(128 + 13)
    expect(errors).toContain('nobody reads the output any more')
  })

  test('ends the job if the reader is gone', async () => {
    const one = start(['-n', '2', ranks, 'lines', '50000'])
    await one.until('\n', 10)
    one.child.stdout!.destroy()
    expect((await one.end).code).toBe(128 + 13)
    expect(one.errors()).toContain('nobody reads the output any more')
  })

  test('ends silent ranks if the reader of a socket is gone', async () => {
    const one = start(['-n', '2', ranks, 'signals'])
    await one.until('ready', 2)
    one.child.stdout!.destroy()
    expect((await one.end).code).toBe(128 + 13)
    expect(one.errors()).toContain('nobody reads the output any more')
    await expectEnded(pidsIn(one.output()))
  })

  test('ends silent ranks if the reader of a pipe is gone', async () => {
    const words = '{ "$@"; echo "status $?" >&2; } | { read first; read second; echo "$first $second" >&2; }'
    const child = spawn('sh', ['-c', words, 'sh', process.execPath, shoal, 'run', '-n', '2', ranks, 'signals'], {
      stdio: ['ignore', 'inherit', 'pipe'],
    })
    children.push(child)
    let errors = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
    await once(child, 'close')
    expect(errors).toContain('nobody reads the output any more; the ranks are being ended')
    expect(errors).toContain(`status ${128 + 13}`)
    const pids = pidsIn(errors.replaceAll(/^shoal run.*$/gm, ''))
    expect(pids).toHaveLength(2)
    await expectEnded(pids)
  })

  test.runIf(existsSync('/dev/full'))('that cannot be written ends the job with the reason', () => {
    const full = openSync('/dev/full', 'w')
    const { status, stderr } = spawnSync(process.execPath, [shoal, 'run', '-n', '2', ranks, 'lines', '50000'], {
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
      timeout: 300_000,
      killSignal: 'SIGKILL',
    })
    closeSync(full)
    expect(status).toBe(1)
    expect(stderr).toMatch(/^shoal run: the output cannot be written: .*ENOSPC.*; the ranks are being ended$/m)
  })

  test('closed by a rank is no failure', async () => {
    const script = join(folder, 'closes.mjs')
    writeFileSync(
      script,
      "import { closeSync } from 'node:fs'\nfor (const one of [1, 2]) closeSync(one)\nsetTimeout(() => undefined, 300)\n",
    )
    expect(await run(['-n', '2', script])).toMatchObject({ code: 0, output: '', errors: '' })
  })
})

describe('the rendezvous of shoal run', () => {
  test('fails waits for a rank that has ended', async () => {
    const failed = await run([
      '-n',
      '3',
      '--on-failure=continue',
      '--exec',
      'sh',
      '-c',
      `[ $RANK = 1 ] && exit 9; exec '${process.execPath}' '${ranks}' waits`,
    ])
    const words = 'SHOAL_RANKS_LOST: bootstrap of rank'
    expect(failed.output.split(words)).toHaveLength(3)
    expect(failed.output).toContain('rank 1 was lost')
    const left = await run(['-n', '3', ranks, 'waits', '1'])
    expect(left.output.split(words)).toHaveLength(3)
    expect(left.output).toContain('rank 1 left the job')
  })

  test.each([
    ['exits', 'rank 0 was lost; told of it: true', 1],
    ['leaves', 'rank 0 left the job; told of it: false', 0],
  ])('reports a rank that %s with status 0 while another waits: %s', async (action, what, told) => {
    const { code, output, errors } = await run(['-n', '2', ranks, action])
    expect(output).toBe(`[1] barrier 'never' cannot end: ${what}\n`)
    expect(code).toBe(0)
    expect(errors.split('rank 0 ended with exit status 0 without leaving the job').length - 1).toBe(told)
  })

  test('reports a rank that exits with status 0 to a wait outside the rendezvous', async () => {
    const { code, output } = await run(['-n', '2', ranks, 'exits', 'quietly'])
    expect(output).toBe('[1] told of it: rank 0 was lost\n')
    expect(code).toBe(0)
  })

  test('rejects connections from strangers, reports the first three, and does not disturb the ranks', async () => {
    const one = start(['-n', '3', ranks, 'rendezvous'])
    await one.until('at tcp://', 3)
    const [, port] = /at tcp:\/\/127\.0\.0\.1:(\d+)/.exec(one.output())!
    for (let i = 0; i < 200; i += 1) {
      const socket = connect(Number(port), '127.0.0.1')
      socket.on('error', () => undefined)
      if (i % 2 === 0) socket.write(Buffer.alloc(4096, i))
    }
    const { code, output, errors } = await one.end
    expect(code).toBe(0)
    expect(output.match(/undisturbed: true/g)).toHaveLength(3)
    expect(linesOf(errors).filter((line) => line.includes('the rendezvous rejected a connection'))).toHaveLength(3)
    expect(linesOf(errors)).toHaveLength(4)
  })
})

test('ranks of shoal run add their numbers with NCCL on the software device', async () => {
  const sum = fileURLToPath(new URL('fixtures/sum.mjs', import.meta.url))
  const { code, output, errors } = await run(['-n', '4', sum], { SHOAL_DEVICE: 'sim' })
  expect(linesOf(errors).filter((line) => !line.includes('software device in use'))).toEqual([])
  expect(linesOf(output).sort()).toEqual([0, 1, 2, 3].map((rank) => `[${rank}] sum 10`))
  expect(code).toBe(0)
})

test.each(['0', '0.5', '86400'])('shoal run accepts a grace period of %s s', async (grace) => {
  const { code, errors } = await run(['-n', '1', '--grace', grace, '--exec', 'true'])
  expect([code, errors]).toEqual([0, ''])
})

describe('shoal run refuses', () => {
  test.each<[string[], string]>([
    [[], '-n, the number of ranks, is missing'],
    [['script.js'], '-n, the number of ranks, is missing'],
    [['-n', '2'], 'the script is missing'],
    [['-n'], '-n needs a value'],
    [['-n', '0', 'x.js'], '-n must be a whole number from 1 to 1024'],
    [['-n', '1.5', 'x.js'], '-n must be a whole number'],
    [['-n', 'two', 'x.js'], '-n must be a whole number'],
    [['-n', '2', 'no-such-script.js'], 'there is no file'],
    [['-n', '2', '.'], 'there is no file'],
    [['-n', '2', '--on-failure', 'maybe', 'x.js'], '--on-failure must be stop or continue'],
    [['-n', '2', '--grace', '-1', 'x.js'], '--grace must be a number of seconds'],
    [['-n', '2', '--grace', '', 'x.js'], '--grace must be a number of seconds'],
    [['-n', '2', '--grace', '86401', 'x.js'], '--grace must be a number of seconds from 0 to 86400'],
    [['-n', '2', '--no-prefix=yes', 'x.js'], '--no-prefix takes no value'],
    [['-n', '2', '--device-map', '0', 'x.js'], '--device-map names 1 devices for 2 ranks'],
    [['-n', '2', '--device-map', '1,1', 'x.js'], '--device-map names device 1 twice'],
    [['-n', '2', '--device-map', 'all', 'x.js'], '--device-map must be rank, each or a list'],
    [['-n', '2', '-e', 'console.log(1)'], 'the ranks need a script file'],
    [['-n', '2', '--exec', '--inspect', 'x.js'], 'options of Node cannot be used with --exec'],
  ])('%j', async (commandLine, words) => {
    const { code, output, errors } = await run(commandLine)
    expect(errors).toContain(words)
    expect(errors).not.toContain('    at ')
    expect(output).toBe('')
    expect(code).toBe(2)
  })

  test('devices that are missing in CUDA_VISIBLE_DEVICES', async () => {
    const options = ['-n', '2', '--device-map', '0,4', ranks, 'variables']
    const { code, errors } = await run(options, { CUDA_VISIBLE_DEVICES: '2,3' })
    expect(errors).toContain("--device-map asks for device 4, and CUDA_VISIBLE_DEVICES is '2,3'")
    expect(code).toBe(2)
  })
})

test('shoal --version prints the version', () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  for (const option of ['--version', '-v']) {
    const { status, stdout, stderr } = spawnSync(process.execPath, [shoal, option], { encoding: 'utf8' })
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: `${version}\n`, stderr: '' })
  }
})

test('shoal --help lists all commands', async () => {
  const { code, output } = await run(['--help'])
  expect(output).toContain('usage: shoal run -n N')
  expect(code).toBe(0)
  expect(await run(['-n', '2', '-h'])).toMatchObject({ code, output })
  const whole = spawn(process.execPath, [shoal, 'dance'])
  let errors = ''
  whole.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  expect(await new Promise((resolve) => whole.once('close', resolve))).toBe(2)
  expect(errors).toContain("there is no command 'dance'")
  expect(errors).toMatch(/run .*\n.*doctor/)
})
