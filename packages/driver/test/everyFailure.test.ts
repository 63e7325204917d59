import { setTimeout as sleep } from 'node:timers/promises'
import { driver } from '@shoal/cuda-sys/driver'
import { NativeMemory } from '@shoal/ffi'
import { bindCall, putCString, slots64 } from '@shoal/ffi/calls'
import { StatusError } from '@shoal/types'
import { expect, test } from 'vitest'
import { left, leftSince } from './support/left.js'
import { device, second, works } from './support/works.js'

const { hasReleases } = await import('@shoal/driver/shared')

/** A status that no call returns by itself and that no code treats as a normal answer. */
const operatingSystem = 304

function call(name: string, text: string, ...rest: (number | bigint)[]): number {
  putCString(0, text, name, 'name')
  for (const [index, value] of rest.entries()) slots64[index + 1] = BigInt(value)
  return bindCall(driver.rawSymbol(name) as bigint, 1 + rest.length, 'i32', name)()
}

const name = NativeMemory.allocate(64)
const count = NativeMemory.allocate(8)

/** Returns the driver functions that the work calls, with the number of calls. */
async function callsOf(work: () => unknown): Promise<ReadonlyMap<string, number>> {
  call('shimWatch', '', 0, 0, 0)
  await work()
  await released()
  call('shimUnwatch', '')
  const calls = new Map<string, number>()
  const shimCalled = bindCall(driver.rawSymbol('shimCalled') as bigint, 3, 'i32', 'shimCalled')
  for (let index = 0n; ; index += 1n) {
    slots64[0] = index
    slots64[1] = name.address
    slots64[2] = count.address
    if (shimCalled() === 0) return calls
    const [function_] = new TextDecoder().decode(name.bytes).split('\0') as [string]
    const times = Number(count.u64[0])
    if (times > 0) calls.set(function_, times)
  }
}

const isRelease = (api: string): boolean => /Destroy|Free|Release|Unload|Unmap|Unbind|Unregister|Close/.test(api)

/** Functions that the addon calls around each call. Their errors are reported as errors of that call. */
const aroundCalls = ['cuCtxGetCurrent', 'cuCtxSetCurrent', 'cuCtxPopCurrent']
/** Functions that may fail silently, because their callers have a fallback: a failed query counts as "not complete". */
const questions = ['cuStreamQuery', 'cuEventQuery', 'cuStreamGetId', 'cuInit', 'cuDeviceTotalMem']
/** Functions that mark the end of an upload. If they fail, the upload waits instead. */
const marks = ['cuEventCreate', 'cuEventRecord']
const unheard: { readonly [what: string]: readonly string[] } = {
  'copies from and to arrays': marks,
  'page-locked memory': marks,
  rows: marks,
  arrays: marks,
}

async function ended(): Promise<void> {
  for (const each of [device, second]) each.dispose()
  const isActive = (): boolean => [device, second].some((each) => each.primaryContextState.active)
  for (let turn = 0; isActive() && turn < 30_000; turn += 1) await sleep(1)
  expect(isActive()).toBe(false)
}

/** Resolves when disposed objects are released and the warnings about their releases have arrived. */
async function released(): Promise<void> {
  while (hasReleases()) await sleep(1)
  await sleep(1)
}

/** Returns the error of the work, the original one if its cleanup failed too, or the warning of a late release. */
async function thrownBy(work: () => unknown): Promise<string> {
  const warnings: string[] = []
  const note = ({ message }: Error): void => {
    const [, api, status] = /could not be freed: (\w+) failed: \w+ \((\d+)\)/.exec(message) ?? []
    if (api !== undefined) warnings.push(`${api} ${status}`)
  }
  process.on('warning', note)
  try {
    await work()
    await released()
    return warnings[0] ?? 'nothing'
  } catch (error) {
    const first = (error as { suppressed?: unknown }).suppressed ?? error
    return first instanceof StatusError ? `${first.api} ${first.status}` : String(first)
  } finally {
    process.off('warning', note)
  }
}

test.each(Object.entries(works))('%s: each failing driver call throws, and leaks nothing', async (what, work) => {
  await work()
  await ended()
  const calls = await callsOf(work)
  await ended()
  const found: string[] = []
  for (const [api, times] of calls) {
    if (aroundCalls.includes(api)) continue
    for (let time = 1; time <= Math.min(times, 3); time += 1) {
      const before = left()
      call('shimWatch', api, time, operatingSystem, isRelease(api) ? 1 : 0)
      const thrown = await thrownBy(work)
      const hasFailed = call('shimUnwatch', '') === 1
      const mayBeUnheard = questions.includes(api) || unheard[what]?.includes(api)
      if (hasFailed && !mayBeUnheard && thrown !== `${api} ${operatingSystem}`)
        found.push(`${api}, call ${time}: ${thrown}`)
      await ended()
      const more = await leftSince(before)
      if (more !== '') found.push(`${api}, call ${time}: leaves ${more}`)
    }
  }
  expect(found).toEqual([])
})

test('a context that cannot be popped again is destroyed', async () => {
  const { CreatedContext } = await import('@shoal/driver/context')
  const make = (): void => CreatedContext.create(device).dispose()
  make()
  await ended()
  const before = left()
  call('shimWatch', 'cuCtxPopCurrent', 1, operatingSystem, 0)
  const thrown = await thrownBy(make)
  expect(call('shimUnwatch', '')).toBe(1)
  expect(thrown).toBe(`cuCtxPopCurrent ${operatingSystem}`)
  await ended()
  expect(await leftSince(before)).toBe('')
})
