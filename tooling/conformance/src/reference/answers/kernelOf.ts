import { type Device, type Kernel, Module } from '@shoal/driver'

const modules = new Map<string, Module>()
const signature = ['ptr', 'u32', 'u32'] as const

/** Returns a module of PTX. Each is loaded once. */
export function moduleOf(device: Device, ptx: string): Module {
  let module = modules.get(ptx)
  if (module === undefined) modules.set(ptx, (module = Module.loadSync(device, ptx)))
  return module
}

/** Returns a kernel of the list. */
export function kernelOf(device: Device, ptx: string, name: string): Kernel<typeof signature> {
  return moduleOf(device, ptx).kernel(name, signature)
}

/** Unloads all loaded modules. */
export function unloadModules(): void {
  for (const module of modules.values()) module.dispose()
  modules.clear()
}
