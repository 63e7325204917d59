/** Device code: modules, libraries of both packages, and images that the linker joins. */
import { Module } from '@shoal/driver'
import { Library, Linker } from '@shoal/driver/library'
import * as runtime from '@shoal/runtime/library'
import { DisposedError, StatusError } from '@shoal/types'
import type { World } from '../world.js'
import { kernelSource } from './kernelSource.js'

/** An object with kernels and variables. */
export type Code = Module | Library

/** Libraries that were loaded for one device and can serve others, with the devices that have used each. */
const libraries = (): { readonly library: Library; readonly devices: Set<number> }[] => []

/** Loads the kernels of the model in one of several ways. */
export async function loadCode(world: World, device: number): Promise<Code> {
  const owner = world.devices[device] as never
  const way = world.random.integer(0, 5)
  if (way === 0) return Module.load(owner, kernelSource)
  if (way === 1) return Module.load(owner, await link(world, device))
  if (way === 2) {
    // The code of a library is loaded only once. Each device has its own variables, which stay the same at each use.
    const isNew = (one: ReturnType<typeof libraries>[number]): boolean =>
      !one.library.disposed && !one.devices.has(device)
    const there = world.pick(world.part(libraries).filter(isNew))
    there?.devices.add(device)
    if (there !== undefined) return there.library.on(owner)
  }
  if (way <= 4) {
    const library = way === 3 ? Library.loadSync(owner, kernelSource) : await Library.load(owner, kernelSource)
    world.equal('kernels of a library', library.kernelNames.includes('addEach'), true)
    world.part(libraries).push({ library, devices: new Set([device]) })
    return library
  }
  const option = { device: world.runtimeDevices[device] as never }
  return world.chance(0.5)
    ? Module.loadSync(owner, kernelSource)
    : ((await runtime.Library.load(kernelSource, option)) as Library)
}

const undefinedFunction = `.version 8.0
.target sm_90
.address_size 64
.extern .func missing();
.visible .entry calls()
{
  call.uni missing, ();
  ret;
}
`
const another = `.version 8.0
.target sm_90
.address_size 64
.visible .entry another()
{
  ret;
}
`

async function link(world: World, device: number): Promise<Uint8Array> {
  const linker = Linker.create(world.devices[device] as never)
  const isDisposedFirst = world.chance(0.1)
  if (isDisposedFirst) {
    linker.dispose()
    world.refused('add() of a linker', () => linker.add(kernelSource), [DisposedError])
    await world.rejects('complete() of a linker', linker.complete(), [DisposedError])
    return link(world, device)
  }
  if (world.chance(0.2)) {
    linker.add(undefinedFunction)
    await world.rejects('a link without a function', linker.complete(), [StatusError])
    linker.dispose()
    return link(world, device)
  }
  const image = linker.add(another).add(kernelSource)
  const linked = world.chance(0.5) ? await image.complete() : image.completeSync()
  linker.dispose()
  return linked
}
