import { fileURLToPath } from 'node:url'
import { general, type Makers, type Subject } from './subject.js'

const source = 'extern "C" __global__ void k(float* x) { *x = 1; }'
const ptx = `.version 7.0
.target sm_70
.address_size 64
.visible .entry k() { ret; }`

/** Compilers need no device. Where they are missing, what is right ends with an error that says so. */
const values: Makers = {
  ...general,
  '#source': () => source,
  '#architecture': () => 'sm_90',
  '#kind': () => 'ptx',
  '#data': () => ptx,
  '#path': () => fileURLToPath(new URL('../../../../kernels/ptx/apps.ptx', import.meta.url)),
}

/** What compiles. */
export async function nvrtcSubject(): Promise<Subject> {
  const module = await import('@shoal/nvrtc')
  return { module, instances: { Program: () => new module.Program(source) }, values, foreignObjects: {} }
}

/** What links. */
export async function nvjitlinkSubject(): Promise<Subject> {
  const module = await import('@shoal/nvjitlink')
  const linker = (): unknown => new module.Linker({ architecture: 'sm_90' }).add('ptx', ptx)
  return { module, instances: { Linker: linker }, values, foreignObjects: {} }
}

/** What makes modules of sources. */
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
