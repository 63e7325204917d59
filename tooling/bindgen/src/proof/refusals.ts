// Bad input for every parameter of every function. Each must be refused with an error that names the function and the
// parameter, before any native code runs.

import type { FunctionSpec, Lowered, ParameterSpec } from '../spec/types.js'
import { callOnce, fail, type Session } from './engines.js'
import { byteLength } from './memory.js'
import type { Ffi, SysFunction } from './packages.js'
import { show } from './results.js'
import { integerRange, scalarKind } from './scalars.js'
import { argumentsFor } from './values.js'

const nothing = [undefined, Symbol('s'), () => 0]
const objects = [{}, [], new Date(0), Object(5), Object(5n), Object(true), new Proxy(new Uint8Array(4096), {})]
const junk = [...nothing, ...objects, 5, 1.5, Number.NaN, true, -1n, 2n ** 64n, 2n ** 200n]

/** Values that a parameter must refuse. */
export function badValues({ lowered, pointee }: ParameterSpec, { NativeMemory }: Ffi): unknown[] {
  switch (lowered.kind) {
    case 'handle':
    case 'deviceptr':
    case 'callback':
      return [...junk, '5', new Uint8Array(4096), new ArrayBuffer(4096)]
    case 'pointer':
      return [...junk, '5', '', ...tooSmall((pointee?.size ?? 0) - 1, pointee?.array ?? false, NativeMemory)]
    case 'cstring':
      return [...junk, 'a\0b']
    case 'size':
    case 'integer':
    case 'enum':
      return badIntegers(lowered)
    case 'bool':
      return [...nothing, ...objects, null, 0, 1, 'true', 1n]
    case 'float':
      return [...nothing, ...objects, null, '1', 1n, true, new Float32Array(1)]
    case 'struct':
      return [
        ...nothing,
        ...objects,
        null,
        5,
        0x1000n,
        'x'.repeat(lowered.size),
        new ArrayBuffer(lowered.size),
        new Uint8Array(lowered.size - 1),
        new DataView(new ArrayBuffer(lowered.size), 1),
        Array.from({ length: lowered.size }, () => 0),
      ]
    case 'void':
      return []
  }
}

/** Memory that is too small. An array whose length is in another argument may be empty. */
function tooSmall(size: number, mayBeEmpty: boolean, NativeMemory: Ffi['NativeMemory']): unknown[] {
  if (size < (mayBeEmpty ? 1 : 0)) return []
  return [
    new Uint8Array(size),
    new DataView(new ArrayBuffer(size)),
    new DataView(new ArrayBuffer(size + 8), 8),
    new ArrayBuffer(size),
    new SharedArrayBuffer(size),
    new Uint8Array(byteLength).subarray(byteLength - size),
    NativeMemory.allocate(size),
  ]
}

function badIntegers(lowered: Lowered): unknown[] {
  const [low, high] = integerRange(scalarKind(lowered))
  const always = [
    ...nothing,
    ...objects,
    null,
    '1',
    true,
    1.5,
    Number.NaN,
    Infinity,
    -Infinity,
    new Uint8Array(8),
    -1e300,
  ]
  if (high > 2n ** 32n)
    return [...always, low - 1n, high + 1n, 2n ** 200n, 2 ** 53, -(2 ** 53), ...(low === 0n ? [-1] : [])]
  return [...always, Number(low) - 1, Number(high) + 1, 1n, 2 ** 53]
}

/** Passes every bad value to every parameter, with valid values for the others. */
export function runRefusals(session: Session): void {
  // Hundreds of thousands of errors are caught here, and their stack traces are never read.
  Error.stackTraceLimit = 0
  for (const entry of session.job.spec.functions) {
    const wrapper = session.sys.exports[entry.name] as SysFunction | undefined
    if (wrapper === undefined) {
      fail(session, entry, 'refusals', 'is not exported')
      continue
    }
    for (const [index, parameter] of entry.parameters.entries()) refuseAll(session, entry, wrapper, parameter, index)
    // A refused call must not affect the next call.
    callOnce(session, entry, 'memory', true, (values) => wrapper(...values.map(({ js }) => js)))
    session.report.functions.push(entry.name)
  }
}

function refuseAll(
  session: Session,
  entry: FunctionSpec,
  wrapper: SysFunction,
  parameter: ParameterSpec,
  index: number,
): void {
  const { log, random, memory, report } = session
  const start = [`${entry.name}: ${parameter.name} `, `${entry.name}: ${parameter.name}_ `]
  report.arguments++
  const right = argumentsFor(entry, 'memory', random, memory).map(({ js }) => js)
  for (const bad of badValues(parameter, session.ffi)) {
    const handed = right.with(index, bad)
    log.clear()
    report.calls++
    const complain = (what: string): void => fail(session, entry, `${parameter.name} = ${show(bad)}`, what)
    try {
      wrapper(...handed)
      complain('was not refused')
    } catch (error) {
      const isRight =
        (error instanceof TypeError || error instanceof RangeError) &&
        start.some((text) => error.message.startsWith(text))
      if (!isRight) complain(String(error))
    }
    if (!log.isEmpty) complain('something native ran')
  }
}
