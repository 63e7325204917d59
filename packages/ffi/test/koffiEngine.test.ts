import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { folder, stubFile } from './fixtures/stub.js'

// The proofs of tooling/bindgen call every function of every library with this engine. This file tests everything else.

const packages = fileURLToPath(new URL('../..', import.meta.url))

function run(engine: string, body: string, modules = join(packages, 'ffi', 'dist')) {
  const program = `
    import { readFileSync } from 'node:fs'
    const ffi = await import(${JSON.stringify(pathToFileURL(join(modules, 'index.js')).href)})
    const { putCString, putF32, putI32, putPointer, lowerCall } = await import(${JSON.stringify(pathToFileURL(join(modules, 'callEngine.js')).href)})
    const library = ffi.defineLibrary({ id: 'stub', title: 'stub', environment: 'X', linux: ['x'], hint: 'x' })
    library.setPath(${JSON.stringify(stubFile())})
    const told = (work) => { try { return work() } catch (error) { return [error.name, error.code, error.message].join(': ') } }
    ${body}`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    // Excludes the folders that a package manager's wrapper adds to the module search.
    env: { ...process.env, SHOAL_FFI_ENGINE: engine, NODE_PATH: '' },
  })
  expect(stderr).toBe('')
  return JSON.parse(stdout) as unknown[]
}

test('with the koffi engine, calls use koffi without loading the addon, and both reports name it', () => {
  const told = run(
    'koffi',
    `const layout = lowerCall(['float', 'word'])
     putF32(layout.slot(0), 1.25, 'add_float', 'a')
     putI32(layout.slot(1), 2, 'add_float', 'b')
     const sum = library.bind('add_float', 0, layout, 'f32')()
     const [{ found, engine }] = ffi.probe([library])
     const isLoaded = readFileSync('/proc/self/maps', 'utf8').includes('shoal_ffi.node')
     console.log(JSON.stringify([sum, found, engine, ffi.probeAddon(), isLoaded]))`,
  )
  expect(told).toEqual([3.25, true, 'koffi', { loaded: true, engine: 'koffi' }, false])
})

test('with the addon engine, both reports name the addon', () => {
  const told = run('', `console.log(JSON.stringify([ffi.probe([library])[0].engine, ffi.probeAddon()]))`)
  expect(told).toEqual(['addon', { loaded: true, engine: 'addon' }])
})

test('with the koffi engine, memory, text and symbols work', () => {
  const told = run(
    'koffi',
    `const memory = ffi.NativeMemory.allocate(16)
     memory.bytes.set([65, 66, 0, 9])
     const { bytes, buffer, address } = memory
     const before = [ffi.readCString(address), [...ffi.readMemory(address, 4)], ffi.addressOf(bytes.subarray(4)) - address === 4n]
     memory.dispose()
     console.log(JSON.stringify([...before, bytes.length, buffer.byteLength, library.has('fill'), library.has('no_such')]))`,
  )
  expect(told).toEqual(['AB', [65, 66, 0, 9], true, 0, 0, true, false])
})

test('with the koffi engine, a call switches the context and back, and returns a refusal as its status', () => {
  const told = run(
    'koffi',
    `const out = ffi.NativeMemory.allocate(8)
     const set = library.bind('set_current', 0, 1)
     const get = library.bind('get_current', 0, 1)
     const { putHandle } = await import(${JSON.stringify(pathToFileURL(join(packages, 'ffi/dist/callEngine.js')).href)})
     const current = () => { putPointer(0, out, 'get_current', 'out'); return [get(), Number(out.u64[0])] }
     ffi.setContextFunctions(library.address('get_current'), library.address('set_current'))
     putHandle(0, 5n, 'set_current', 'context')
     set()
     ffi.callInContext(7n)
     const within = current()
     const after = current()
     ffi.callInContext(666n)
     const refused = get()
     const previous = ffi.enterContext(8n)
     const entered = current()
     ffi.leaveContext(previous)
     console.log(JSON.stringify([within, after, refused, entered, current(), told(() => ffi.enterContext(666n))]))`,
  )
  expect(told.slice(0, 5)).toEqual([[0, 7], [0, 5], 709, [0, 8], [0, 5]])
  expect(told[5]).toContain('StatusError')
})

test('with the koffi engine, threads, waits and views are refused with a typed error', () => {
  const told = run(
    'koffi',
    `const out = ffi.NativeMemory.allocate(8)
     const failures = [
       told(() => ffi.createHostCallback(() => {})),
       told(() => ffi.hostView(out.address, 8)),
       told(() => ffi.createLane()),
       told(() => ffi.offThread({}, () => {})),
     ]
     console.log(JSON.stringify(failures))`,
  ) as string[]
  expect(told).toHaveLength(4)
  for (const failure of told) {
    expect(failure).toMatch(
      /^FeatureNotSupportedError: SHOAL_FEATURE_NOT_SUPPORTED: koffi does not support \w+ here: .*need the addon$/,
    )
  }
})

test('an unknown engine is refused', () => {
  const [told, probed] = run(
    'magic',
    `console.log(JSON.stringify([told(() => ffi.NativeMemory.allocate(8)), ffi.probeAddon()]))`,
  )
  expect(told).toBe("RangeError: : SHOAL_FFI_ENGINE must be 'addon' or 'koffi', not 'magic'")
  expect(probed).toEqual({ loaded: false, error: "SHOAL_FFI_ENGINE must be 'addon' or 'koffi', not 'magic'" })
})

test('without koffi the addon works, and functions that need koffi explain how to install it', () => {
  const modules = join(folder, 'without', 'node_modules', '@shoal')
  for (const name of ['types', 'ffi']) {
    mkdirSync(join(modules, name), { recursive: true })
    for (const part of ['dist', 'package.json']) {
      cpSync(join(packages, name, part), join(modules, name, part), { recursive: true })
    }
  }
  cpSync(join(packages, 'ffi', 'prebuilds'), join(modules, 'ffi', 'prebuilds'), { recursive: true })
  const foreign = `told(() => library.bindForeign('add_float', 0, 'float %s(float, int)'))`
  const allocated = `told(() => ffi.NativeMemory.allocate(8).byteLength)`
  const body = `console.log(JSON.stringify([${allocated}, ${foreign}]))`
  const advice = 'the package koffi is missing or does not load: npm install koffi@^3.3.4, or use the addon'
  const error = (api: string) =>
    `FeatureNotSupportedError: SHOAL_FEATURE_NOT_SUPPORTED: @shoal/ffi does not support ${api} here: ${advice}`
  expect(run('', body, join(modules, 'ffi', 'dist'))).toEqual([8, error('add_float (bindForeign)')])
  expect(run('koffi', body, join(modules, 'ffi', 'dist'))).toEqual(new Array(2).fill(error('SHOAL_FFI_ENGINE=koffi')))
})
