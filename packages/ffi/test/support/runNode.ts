import { spawnSync } from 'node:child_process'
import { stubFile } from '../fixtures/stub.js'

// These programs are text, so that they run the built package without the test runner.
export const prelude = `
  const { defineLibrary, NativeMemory, offThread, waitForEvent, createHostCallback } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi'))})
  const { putI32, putPointer } = await import(${JSON.stringify(import.meta.resolve('@shoal/ffi/calls'))})
  const library = defineLibrary({ id: 'stub', title: 'stub', environment: 'X', linux: ['x'], hint: 'x' })
  library.setPath(${JSON.stringify(stubFile())})
  const sleep = library.bind('sleep_ms', 0, 1)
  const sleepMs = (ms) => { putI32(0, ms, 'sleep_ms', 'ms'); return sleep() }
  const memory = NativeMemory.allocate(8)
  memory.i32[0] = 2 ** 31 - 1
  const inFlight = () => [
    offThread({ keep: [memory] }, () => sleepMs(1500)),
    waitForEvent({ context: 0n, event: memory.address, query: library.address('query'), notReady: 600 }),
  ]
`

/** Runs a program in a separate Node process. It can use the tests' library and `inFlight()`. */
export function runNode(body: string) {
  return spawnSync(process.execPath, ['--input-type=module', '-e', prelude + body], {
    encoding: 'utf8',
    timeout: 300_000,
  })
}
