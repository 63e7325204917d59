import { emptyKernels } from '@shoal/cli/bench'
import type { Case } from '../turns.js'

export const kibibyte = 1024
export const mebibyte = 1024 * kibibyte
/** The size of a round trip, typical for a request to a server. */
export const tripBytes = 64 * kibibyte
export const streamsInFlight = 16
export const threadsOfBlock = 256

export const kernels = `${emptyKernels}
.visible .entry addOne(.param .u64 data, .param .u32 n) {
  .reg .pred %past;
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  .reg .f32 %f<2>;
  ld.param.u64 %rd0, [data];
  ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %past, %r4, %r0;
  @%past ret;
  mul.wide.u32 %rd1, %r4, 4;
  add.s64 %rd2, %rd0, %rd1;
  ld.global.f32 %f0, [%rd2];
  add.f32 %f1, %f0, 0f3F800000;
  st.global.f32 [%rd2], %f1;
  ret;
}
`

const ways = {
  'up-pinned': 'page-locked',
  'up-ordinary': 'ordinary',
  'down-pinned': 'page-locked',
  'down-ordinary': 'ordinary',
}

/** A case, and the number of bytes that it moves. */
export interface CostCase extends Case {
  readonly bytes: number
}

/** The measured cases. `most` limits the size of copies. Larger copies run fewer iterations. */
export function costCases(most: number, isSoftware: boolean): Readonly<Record<string, CostCase>> {
  const [few, many] = isSoftware ? [2, 20] : [50, 500]
  // Few enough to fit a GPU's launch queue.
  const short = (title: string): CostCase => ({ title, unit: 'µs', count: many, loops: 10, bytes: 0 })
  const trip = (title: string, bytes: number, count: number): CostCase => ({
    title,
    unit: 'µs',
    count,
    loops: 5,
    bytes,
  })
  const largeTrip = Math.min(64 * mebibyte, most)
  const sizes = [4 * kibibyte, 64 * kibibyte, mebibyte, 16 * mebibyte, 256 * mebibyte].filter((bytes) => bytes <= most)
  const copies = Object.entries(ways).flatMap(([way, memory]) =>
    sizes.map((bytes): [string, CostCase] => [
      `${way} ${bytes}`,
      trip(
        `copy ${way.split('-')[0]}, ${memory}, ${sizeName(bytes)}`,
        bytes,
        Math.max(2, Math.min(few * 4, Math.ceil((256 * mebibyte) / bytes / 16))),
      ),
    ]),
  )
  return {
    idle: short('an idle stream'),
    launch: short('launch and wait'),
    pinned: trip('64 KiB up, kernel, down; page-locked', tripBytes, few * 4),
    ordinary: trip('the same, ordinary memory', tripBytes, few * 4),
    [`ordinary ${largeTrip}`]: trip(`the same, ordinary, ${sizeName(largeTrip)}`, largeTrip, 2),
    inFlight: trip(`${streamsInFlight} such trips on ${streamsInFlight} streams, page-locked`, tripBytes, few),
    pool: short('allocate and free, 4 KiB'),
    ...Object.fromEntries(copies),
  }
}

export function sizeName(bytes: number): string {
  return bytes < mebibyte ? `${bytes / kibibyte} KiB` : `${bytes / mebibyte} MiB`
}
