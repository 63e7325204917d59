import { type Device, DeviceBuffer, type Kernel, Module, type Stream } from '@shoal/driver'

/** Widths of elements, in bytes. */
type Width = 1 | 2 | 4 | 8
const widths = [1, 2, 4, 8] as const
const threads = 256
/** Enough for every multiprocessor of a GPU; each thread loops over more elements. */
const mostBlocks = 2048

/**
 * PTX of two kernels that compare element i of `data` (of `count`) with element i mod `period` of `pattern`.
 *
 * One kernel writes the pattern, the other adds the number of differing elements to `wrong`.
 */
function kernelsOf(width: Width): string {
  const type = `u${width * 8}`
  // PTX registers have at least 16 bits.
  const register = width === 8 ? 'b64' : width === 4 ? 'b32' : 'b16'
  const kernel = (name: string, parameter: string, body: string, end: string): string => `
.visible .entry ${name}${width}(.param .u64 data, .param .u64 pattern, .param .u64 count, .param .u32 period${parameter}) {
  .reg .pred %past, %wraps, %differs, %none;
  .reg .b32 %r<6>;
  .reg .b64 %rd<10>;
  .reg .${register} %a, %b;
  ld.param.u64 %rd0, [data];
  ld.param.u64 %rd1, [pattern];
  ld.param.u64 %rd2, [count];
  ld.param.u32 %r0, [period];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mov.u32 %r1, %nctaid.x;
  mul.lo.u32 %r5, %r1, %r2;
  cvt.u64.u32 %rd3, %r4;
  cvt.u64.u32 %rd4, %r5;
  rem.u32 %r4, %r4, %r0;
  rem.u32 %r5, %r5, %r0;
  mov.u64 %rd9, 0;
LOOP:
  setp.ge.u64 %past, %rd3, %rd2;
  @%past bra DONE;
  mul.wide.u32 %rd5, %r4, ${width};
  add.u64 %rd5, %rd1, %rd5;
  ld.global.${type} %a, [%rd5];
  mad.lo.u64 %rd6, %rd3, ${width}, %rd0;
  ${body}
  add.u64 %rd3, %rd3, %rd4;
  add.u32 %r4, %r4, %r5;
  setp.ge.u32 %wraps, %r4, %r0;
  @%wraps sub.u32 %r4, %r4, %r0;
  bra LOOP;
DONE:
  ${end}ret;
}
`
  const compare = `ld.global.${type} %b, [%rd6];
  setp.ne.${register} %differs, %a, %b;
  @%differs add.u64 %rd9, %rd9, 1;`
  const add = `setp.eq.u64 %none, %rd9, 0;
  @%none ret;
  ld.param.u64 %rd7, [wrong];
  red.global.add.u64 [%rd7], %rd9;
  `
  return (
    kernel('repeat', '', `st.global.${type} [%rd6], %a;`, '') + kernel('differ', ', .param .u64 wrong', compare, add)
  )
}

type Parameters = readonly ['ptr', 'ptr', 'u64', 'u32']

/** Makes and checks benchmark data on its device, so that the GPU never idles. */
export class PatternKernels {
  readonly #module: Module
  readonly #pattern: DeviceBuffer<'u8'>
  readonly #wrong: DeviceBuffer<'u64'>
  readonly #repeat: Readonly<Record<Width, Kernel<Parameters>>>
  readonly #differ: Readonly<Record<Width, Kernel<readonly [...Parameters, 'ptr']>>>
  readonly #stream: Stream

  /** @param mostBytes - size of the longest pattern. All work is queued on `stream`. */
  constructor(device: Device, stream: Stream, mostBytes: number) {
    const text = `.version 6.4\n.target sm_52\n.address_size 64\n${widths.map(kernelsOf).join('')}`
    this.#stream = stream
    this.#module = Module.loadSync(device, text)
    this.#pattern = DeviceBuffer.allocate(device, 'u8', mostBytes)
    this.#wrong = DeviceBuffer.zeros(device, 'u64', 1)
    const each = <T>(make: (width: Width) => T) =>
      Object.fromEntries(widths.map((width) => [width, make(width)])) as Record<Width, T>
    this.#repeat = each((width) => this.#module.kernel(`repeat${width}`, ['ptr', 'ptr', 'u64', 'u32'] as const))
    this.#differ = each((width) => this.#module.kernel(`differ${width}`, ['ptr', 'ptr', 'u64', 'u32', 'ptr'] as const))
  }

  /** Queues filling all of `target` with repetitions of the pattern. */
  fill(target: DeviceBuffer, pattern: ArrayBufferView & { readonly BYTES_PER_ELEMENT: number }): void {
    const { config, uploaded, count, period, width } = this.#operands(target, pattern)
    if (count > 0) this.#repeat[width].launch(config, target, uploaded, count, period)
  }

  /** Counts the elements that differ in any bit from those of {@link fill}. */
  async countDifferent(
    found: DeviceBuffer,
    pattern: ArrayBufferView & { readonly BYTES_PER_ELEMENT: number },
  ): Promise<number> {
    const { config, uploaded, count, period, width } = this.#operands(found, pattern)
    if (count === 0) return 0
    this.#wrong.fill(0, { stream: this.#stream })
    this.#differ[width].launch(config, found, uploaded, count, period, this.#wrong)
    const [wrong = 0n] = await this.#wrong.toArray({ stream: this.#stream })
    return Number(wrong)
  }

  #operands(memory: DeviceBuffer, pattern: ArrayBufferView & { readonly BYTES_PER_ELEMENT: number }) {
    const width = pattern.BYTES_PER_ELEMENT as Width
    const count = memory.byteLength / width
    // Use only the part of a long pattern that fits the memory.
    const bytes = new Uint8Array(pattern.buffer, pattern.byteOffset, Math.min(pattern.byteLength, memory.byteLength))
    const stream = this.#stream
    const uploaded = this.#pattern.slice(0, bytes.length).copyFrom(bytes, { stream })
    const period = Math.max(1, bytes.length / width)
    const grid = Math.max(1, Math.min(mostBlocks, Math.ceil(count / threads)))
    return { config: { grid, block: threads, stream }, uploaded, count, period, width }
  }

  dispose(): void {
    for (const object of [this.#wrong, this.#pattern, this.#module]) object.dispose()
  }

  [Symbol.dispose](): void {
    this.dispose()
  }
}
