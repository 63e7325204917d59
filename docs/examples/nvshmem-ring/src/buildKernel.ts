import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type Device, probe } from '@shoal/driver'

const run = promisify(execFile)
const source = fileURLToPath(new URL('../kernels/ring.cu', import.meta.url))

/**
 * Compiles the kernels for a device and links them against NVSHMEM's device library, which lies next to the host library
 * that is in use. Gives back the file with the machine code, in a folder that is the caller's to remove.
 */
export async function buildKernel(device: Device): Promise<string> {
  const library = probe().find(({ id }) => id === 'nvshmem')?.path
  const home = process.env['NVSHMEM_HOME'] || (library === undefined ? '' : dirname(dirname(library)))
  const [include, lib] = [join(home, 'include'), join(home, 'lib')]
  if (!existsSync(join(include, 'nvshmem.h')) || !existsSync(join(lib, 'libnvshmem_device.a'))) {
    throw new Error(`no headers or device library of NVSHMEM in ${home}: NVSHMEM_HOME names another folder`)
  }
  const folder = await mkdtemp(join(tmpdir(), 'shoal-ring-'))
  const [object, cubin] = [join(folder, 'ring.o'), join(folder, 'ring.cubin')]
  const { major, minor } = device.computeCapability
  const architecture = `-arch=sm_${major}${minor}`
  await run('nvcc', [architecture, '-rdc=true', '-dc', `-I${include}`, '-o', object, source])
  await run('nvlink', [architecture, object, `-L${lib}`, '-lnvshmem_device', '-o', cubin])
  return cubin
}
