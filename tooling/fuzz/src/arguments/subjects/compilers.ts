import { fileURLToPath } from 'node:url'
import { general, type Makers, type Subject } from './subject.js'

const source = 'extern "C" __global__ void k(float* x) { *x = 1; }'
const ptx = `.version 7.0
.target sm_70
.address_size 64
.visible .entry k() { ret; }`

/**
 * The compilers need no device. If a compiler is missing, a call with right arguments fails and its error names the
 * compiler.
 */
const values: Makers = {
  ...general,
  '#source': () => source,
  '#architecture': () => 'sm_90',
  '#kind': () => 'ptx',
  '#data': () => ptx,
  '#path': () => fileURLToPath(new URL('../../../../kernels/ptx/apps.ptx', import.meta.url)),
}

/** Returns the subject of `@shoal/nvrtc`. */
export async function nvrtcSubject(): Promise<Subject> {
  const module = await import('@shoal/nvrtc')
  return { module, instances: { Program: () => new module.Program(source) }, values, foreignObjects: {} }
}

/** Returns the subject of `@shoal/nvjitlink`. */
export async function nvjitlinkSubject(): Promise<Subject> {
  const module = await import('@shoal/nvjitlink')
  const linker = (): unknown => new module.Linker({ architecture: 'sm_90' }).add('ptx', ptx)
  return { module, instances: { Linker: linker }, values, foreignObjects: {} }
}

/** Returns the subject of the functions that compile modules from source. */
export async function compileSubject(): Promise<Subject> {
  const module = await import('@shoal/driver/compile')
  const { Device } = await import('@shoal/driver')
  const device = Device.get(0)
  return {
    module,
    instances: { Program: () => new module.Program(source) },
    values: { ...values, '#owner': () => device },
    foreignObjects: {
      'a context that is gone': () => {
        const other = Device.get(1)
        const { primaryContext } = other
        other.dispose()
        return primaryContext
      },
    },
  }
}
