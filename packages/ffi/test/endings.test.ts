import { execFileSync } from 'node:child_process'
import { Worker } from 'node:worker_threads'
import { offThread } from '@shoal/ffi'
import { describe, expect, test } from 'vitest'
import { prelude, runNode } from './support/runNode.js'
import { failWith } from './support/stubCalls.js'

describe('process and worker exits', () => {
  test('the process exits at once and cleanly with calls and waits in flight', () => {
    const run = runNode('inFlight(); setTimeout(() => process.exit(5), 50)')
    expect({ status: run.status, signal: run.signal, stderr: run.stderr }).toEqual({
      status: 5,
      signal: null,
      stderr: '',
    })
  })

  test('exit() in a library ends the process with its status and output, and destroys nothing that V8 still uses', () => {
    const words = `
      process.env.STUB_TELLS_END = '1'
      putPointer(0, new TextEncoder().encode('last words\\0'), 'puts', 'text')
      library.bind('puts', 0, 1)()`
    const exit = `putI32(0, 7, 'exit', 'status'); library.bind('exit', 0, 1)()`
    expect(runNode(`${words}; ${exit}`)).toMatchObject({ status: 7, signal: null, stdout: 'last words\n' })
    expect(runNode(`${words}; process.exit(7)`)).toMatchObject({ status: 7, stdout: 'last words\ndestroyed\n' })
    expect(runNode(words)).toMatchObject({ status: 0, stdout: 'last words\ndestroyed\n' })
  })

  test('a pending call keeps the process alive until it returns, and an idle addon does not', () => {
    const run = runNode('offThread({}, () => sleepMs(200)).then(() => console.log("done"))')
    expect(run.stdout).toBe('done\n')
    expect(run.status).toBe(0)
    expect(runNode('createHostCallback(() => {})').status).toBe(0)
  })

  test('background work lets the process end', () => {
    const run = runNode(`
      const wait = {}, call = {}
      waitForEvent({ context: 0n, event: memory.address, query: library.address('query'), notReady: 600 }, { background: wait })
      offThread({ background: call, keep: [memory] }, () => sleepMs(600_000))
      wait.release(); wait.release(); call.release()
      console.log('ending')`)
    expect({ status: run.status, stdout: run.stdout }).toEqual({ status: 0, stdout: 'ending\n' })
  })

  test('a hanging query delays neither the end of a worker nor that of the process', () => {
    const worker = `${prelude}
      const { workerData } = await import('node:worker_threads')
      waitForEvent({ context: 0n, event: workerData, query: library.address('held_query'), notReady: 600 })`
    const run = runNode(`
      const { Worker } = await import('node:worker_threads')
      const flags = NativeMemory.allocate(8)
      const options = { eval: true, execArgv: ['--input-type=module'], workerData: flags.address }
      const worker = new Worker(${JSON.stringify(worker)}, options)
      while (flags.i32[0] === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      const background = {}
      waitForEvent({ context: 0n, event: memory.address, query: library.address('query'), notReady: 600 }, { background })
      await worker.terminate()
      background.release()
      console.log('ended')`)
    expect(run).toMatchObject({ status: 0, stdout: 'ended\n' })
  })

  test('a worker that ends during its query waits for it, because the queried object may end with the worker', () => {
    const worker = `${prelude}
      const { workerData } = await import('node:worker_threads')
      waitForEvent({ context: 0n, event: workerData, query: library.address('slow_query'), notReady: 600 })`
    const run = runNode(`
      const { Worker } = await import('node:worker_threads')
      const flags = NativeMemory.allocate(8)
      const options = { eval: true, execArgv: ['--input-type=module'], workerData: flags.address }
      const worker = new Worker(${JSON.stringify(worker)}, options)
      while (flags.i32[0] === 0) await new Promise((resolve) => setTimeout(resolve, 1))
      await worker.terminate()
      console.log(flags.i32[1])`)
    expect(run).toMatchObject({ status: 0, stdout: '1\n' })
  })

  test('a worker that exits in a callback, with more callbacks waiting, ends cleanly', async () => {
    const code = `${prelude}
      const { putHandle } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi/calls'))})
      let calls = 0
      const callback = createHostCallback(() => { if (++calls === 40) process.exit(7) })
      const call = library.bind('call_from_thread', 0, 2)
      for (let i = 0; i < 40; i++) {
        putHandle(0, callback.functionAddress, 'c', 'f'); putHandle(1, callback.userData, 'c', 'd'); call()
        offThread({}, () => sleepMs(1))
      }
      setTimeout(() => {}, 300_000)`
    const codes = Array.from({ length: 4 }, () => {
      const worker = new Worker(code, { eval: true, execArgv: ['--input-type=module'] })
      return new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject))
    })
    expect(await Promise.all(codes)).toEqual([7, 7, 7, 7])
  })

  test('an exception in a callback is an uncaught exception of the program', () => {
    const run = runNode(`
      const callback = createHostCallback(() => { throw new Error('from the callback') })
      const call = library.bind('call_from_thread', 0, 2)
      const { putHandle } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi/calls'))})
      putHandle(0, callback.functionAddress, 'c', 'f'); putHandle(1, callback.userData, 'c', 'd'); call()
      setTimeout(() => {}, 500)`)
    expect(run.status).toBe(1)
    expect(run.stderr).toContain('from the callback')
  })

  test('workers use the addon concurrently, and may end with calls in flight', async () => {
    const code = `${prelude}
      const { parentPort } = await import('node:worker_threads')
      const fill = await offThread({ keep: [memory] }, () => sleepMs(10))
      inFlight()
      parentPort.postMessage(fill)`
    const rounds = Array.from({ length: 6 }, async () => {
      const worker = new Worker(code, { eval: true, execArgv: ['--input-type=module'] })
      const message = await new Promise((resolve, reject) => {
        worker.once('message', resolve)
        worker.once('error', reject)
      })
      await worker.terminate()
      return message
    })
    expect(await Promise.all(rounds)).toEqual(Array(6).fill([0]))
    // Their calls in flight end later, without harm.
    await new Promise((resolve) => setTimeout(resolve, 1700))
    expect(await offThread({}, () => failWith(0))).toEqual([0])
  })

  test('a process in which only a worker used the addon survives that worker', () => {
    const worker = JSON.stringify(`${prelude} inFlight(); setTimeout(() => process.exit(), 50)`)
    const body = `
      const { Worker } = await import('node:worker_threads')
      const worker = new Worker(${worker}, { eval: true, execArgv: ['--input-type=module'] })
      worker.on('error', (error) => { console.error(error); process.exit(9) })
      worker.on('exit', () => setTimeout(() => console.log('alive'), 1800))`
    const text = execFileSync(process.execPath, ['--input-type=module', '-e', body], {
      encoding: 'utf8',
      timeout: 300_000,
    })
    expect(text).toBe('alive\n')
  })
})
