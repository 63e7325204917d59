import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Device, Module, probe } from '@shoal/driver'
import { Linker } from '@shoal/driver/library'

const run = promisify(execFile)
const source = fileURLToPath(new URL('../kernels/ring.cu', import.meta.url))

/** The headers and the device library of NVSHMEM, which lie next to the host library that is in use. */
function deviceLibrary(): { readonly include: string; readonly file: string } {
  const library = probe().find(({ id }) => id === 'nvshmem')?.path
  const home = process.env['NVSHMEM_HOME'] || (library === undefined ? '' : dirname(dirname(library)))
  const [include, file] = [join(home, 'include'), join(home, 'lib', 'libnvshmem_device.a')]
  if (!existsSync(join(include, 'nvshmem.h')) || !existsSync(file)) {
    throw new Error(`no headers or device library of NVSHMEM in ${home}: NVSHMEM_HOME names another folder`)
  }
  return { include, file }
}

/**
 * Compiles the kernels for a device: to machine code that is linked with NVSHMEM's device library, or, for the software
 * device, to PTX. Gives back the file, in a folder that is the caller's to remove.
 */
export async function buildKernel(device: Device): Promise<string> {
  const { include, file } = deviceLibrary()
  const folder = await mkdtemp(join(tmpdir(), 'shoal-ring-'))
  const [ptx, object, cubin] = [join(folder, 'ring.ptx'), join(folder, 'ring.o'), join(folder, 'ring.cubin')]
  const { major, minor } = device.computeCapability
  const options = ['-rdc=true', `-I${include}`, source]
  if (device.isSoftware) {
    await run('nvcc', [`-arch=compute_${major}${minor}`, '-ptx', ...options, '-o', ptx])
    return ptx
  }
  const architecture = `-arch=sm_${major}${minor}`
  await run('nvcc', [architecture, '-dc', ...options, '-o', object])
  await run('nvlink', [architecture, object, file, '-o', cubin])
  return cubin
}

/** Loads what {@link buildKernel} made; PTX is linked first, by the driver. */
export async function loadKernel(device: Device, path: string): Promise<Module> {
  if (!path.endsWith('.ptx')) return Module.loadFile(device, path)
  using linker = Linker.create(device)
  return Module.load(device, await linker.addFile(path).addFile(deviceLibrary().file).complete())
}
