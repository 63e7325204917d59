/** Common objects for graph tests: two devices, streams, and kernels that add, count down and choose. */
import { afterAll } from 'vitest'

Object.assign(process.env, { SHOAL_DEVICE: 'sim', SHOAL_SIM_DEVICES: '2' })
const { Device, DeviceBuffer, Module } = await import('@shoal/driver')

const code = `
.version 8.5
.target sm_90
.address_size 64
.extern .func cudaGraphSetConditional (.param .b64 handle, .param .b32 value);
.visible .entry add(.param .u64 at, .param .u32 value) {
  .reg .b64 %p; .reg .b32 %n;
  ld.param.u64 %p, [at];
  ld.param.u32 %n, [value];
  red.global.add.u32 [%p], %n;
  ret;
}
.visible .entry countDown(.param .u64 handle, .param .u64 left) {
  .reg .b64 %h, %p; .reg .b32 %n, %c; .reg .pred %more;
  ld.param.u64 %h, [handle];
  ld.param.u64 %p, [left];
  ld.global.u32 %n, [%p];
  sub.u32 %n, %n, 1;
  st.global.u32 [%p], %n;
  setp.ne.u32 %more, %n, 0;
  selp.u32 %c, 1, 0, %more;
  { .param .b64 a; .param .b32 b;
    st.param.b64 [a], %h; st.param.b32 [b], %c;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}
.visible .entry choose(.param .u64 handle, .param .u32 value) {
  .reg .b64 %h; .reg .b32 %c;
  ld.param.u64 %h, [handle];
  ld.param.u32 %c, [value];
  { .param .b64 a; .param .b32 b;
    st.param.b64 [a], %h; st.param.b32 [b], %c;
    call.uni cudaGraphSetConditional, (a, b); }
  ret;
}
`

export const device = Device.get(0)
export const second = Device.get(1)
export const module = Module.loadSync(device, code)
export const add = module.kernel('add', ['ptr', 'u32'])
export const countDown = module.kernel('countDown', ['u64', 'ptr'])
export const choose = module.kernel('choose', ['u64', 'u32'])
export const one = { grid: 1, block: 1 } as const
export const stream = device.createStream({ nonBlocking: true })
export const other = device.createStream({ nonBlocking: true })
afterAll(() => {
  for (const each of [stream, other, module]) each.dispose()
})

export const zeros = (length = 1) => DeviceBuffer.zeros(device, 'u32', length)
export const firstOf = (buffer: import('@shoal/driver').DeviceBuffer<'u32'>) => buffer.toArraySync()[0]
