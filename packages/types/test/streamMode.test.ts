import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'

const entry = import.meta.resolve('@shoal/types')

/** Runs code in a new process with the package as `types`. Returns the parsed output. */
function inProcess(code: string, environment: Record<string, string> = {}): unknown {
  const { SHOAL_STREAM_MODE: _, ...inherited } = process.env
  const source = `import * as types from ${JSON.stringify(entry)}
    const attempt = f => { try { return f() ?? null } catch (e) { return e.constructor.name + ': ' + e.message } }
    const print = value => console.log(JSON.stringify(value, (_, v) => typeof v === 'bigint' ? String(v) : v))
    ${code}`
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', source], {
    env: { ...inherited, ...environment },
    encoding: 'utf8',
  })
  return JSON.parse(output)
}

describe('streamMode', () => {
  it('defaults to legacy', () => {
    expect(inProcess('print(types.streamMode())')).toBe('legacy')
    expect(inProcess('print(types.streamMode())', { SHOAL_STREAM_MODE: '' })).toBe('legacy')
    expect(inProcess('print(types.streamMode())', { SHOAL_STREAM_MODE: 'per-thread' })).toBe('per-thread')
    expect(inProcess("types.setStreamMode('per-thread'); print(types.streamMode())")).toBe('per-thread')
  })

  it('uses the choice of the program', () => {
    const code = "types.setStreamMode('legacy'); print(types.streamMode())"
    expect(inProcess(code, { SHOAL_STREAM_MODE: 'per-thread' })).toBe('legacy')
  })

  it('cannot change after it was read', () => {
    const code = `types.streamMode()
      print([attempt(() => types.setStreamMode('legacy')), attempt(() => types.setStreamMode('per-thread'))])`
    const [same, other] = inProcess(code) as [unknown, string]
    expect(same).toBeNull()
    expect(other).toContain("already 'legacy' and in use")
  })

  it('can change until it is read', () => {
    const code = "types.setStreamMode('per-thread'); types.setStreamMode('legacy'); print(types.streamMode())"
    expect(inProcess(code)).toBe('legacy')
  })

  it('refuses other words', () => {
    expect(inProcess("print(attempt(() => types.setStreamMode('fast')))")).toContain(
      "TypeError: setStreamMode: mode must be 'legacy' or 'per-thread', not 'fast'",
    )
    const code = 'print([attempt(types.streamMode), attempt(types.streamMode)])'
    const [first, second] = inProcess(code, { SHOAL_STREAM_MODE: 'fast' }) as string[]
    expect(first).toContain("SHOAL_STREAM_MODE must be 'legacy' or 'per-thread', not 'fast'")
    expect(second).toBe(first)
  })

  it('reaches workers, which cannot change it', () => {
    const worker = `
      Promise.all([import(${JSON.stringify(entry)}), import('node:worker_threads')]).then(([types, threads]) => {
        let refused = false
        try { types.setStreamMode('legacy') } catch { refused = true }
        threads.parentPort.postMessage([types.streamMode(), refused])
      })`
    const code = `
      import { Worker } from 'node:worker_threads'
      types.setStreamMode('per-thread')
      types.streamMode()
      new Worker(${JSON.stringify(worker)}, { eval: true }).once('message', print)`
    expect(inProcess(code)).toEqual(['per-thread', true])
  })

  it('names the default stream of each mode so that every library understands it', () => {
    const code = 'print(types.toStreamHandle(null).handle)'
    expect(inProcess(code)).toBe('0')
    expect(inProcess(code, { SHOAL_STREAM_MODE: 'per-thread' })).toBe('2')
  })

  it('is shared by all copies of the package in a process', () => {
    const code = `const copy = await import(${JSON.stringify(`${entry}?copy`)})
      copy.setStreamMode('per-thread')
      print([types.streamMode(), copy.streamMode(), copy.streamMode === types.streamMode])`
    expect(inProcess(code)).toEqual(['per-thread', 'per-thread', false])
  })
})
