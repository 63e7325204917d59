/** Kernels of the programs in `suites/samples.ts`. */

const types = { p: 'pred', r: 'b32', rd: 'b64', f: 'f32' } as const

/**
 * The start of a kernel: parameters in registers, addresses (`%rd`) converted to global memory, the index of the thread
 * in %r1, and the number of threads in %r2.
 */
function entry(
  target: string,
  name: string,
  parameters: Readonly<Record<string, string>>,
  registers: Readonly<Partial<Record<keyof typeof types, number>>>,
  first = '',
): string {
  const given = Object.entries(parameters).map(([parameter, register]) => {
    const type = register.startsWith('rd') ? 'u64' : 'u32'
    return { declared: `.param .${type} ${parameter}`, loaded: `  ld.param.${type} %${register}, [${parameter}];` }
  })
  const addresses = Object.values(parameters).filter((register) => register.startsWith('rd'))
  return `.version 7.8
.target ${target}
.address_size 64
.visible .entry ${name}(${given.map(({ declared }) => declared).join(', ')}) {
${Object.entries(registers)
  .map(([kind, count]) => `  .reg .${types[kind as 'p']} %${kind}<${count}>;`)
  .join('\n')}
  ${first}
${given.map(({ loaded }) => loaded).join('\n')}
${addresses.map((register) => `  cvta.to.global.u64 %${register}, %${register};`).join('\n')}
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mov.u32 %r6, %nctaid.x;
  mad.lo.u32 %r1, %r3, %r4, %r5;
  mul.lo.u32 %r2, %r4, %r6;`
}

/** Sums `n` elements at `%rd1` into %r8. Each thread adds every element of its stride. */
const strided = `
  mov.u32 %r8, 0;
  mov.u32 %r9, %r1;
next:
  setp.ge.u32 %p1, %r9, %r7;
  @%p1 bra summed;
  mul.wide.u32 %rd8, %r9, 4;
  add.s64 %rd8, %rd1, %rd8;
  ld.global.u32 %r10, [%rd8];
  add.u32 %r8, %r8, %r10;
  add.u32 %r9, %r9, %r2;
  bra next;
summed:`

/** `(in, out, n)`: each block of 128 threads writes the sum of its part. */
export const sumPtx = `${entry('sm_70', 'sum', { in: 'rd1', out: 'rd2', n: 'r7' }, { p: 3, r: 16, rd: 10 }, '.shared .align 4 .b8 parts[512];')}${strided}
  mov.u32 %r11, parts;
  shl.b32 %r12, %r5, 2;
  add.u32 %r11, %r11, %r12;
  st.shared.u32 [%r11], %r8;
  mov.u32 %r13, 64;
halve:
  bar.sync 0;
  setp.ge.u32 %p1, %r5, %r13;
  @%p1 bra skip;
  shl.b32 %r12, %r13, 2;
  add.u32 %r12, %r11, %r12;
  ld.shared.u32 %r14, [%r12];
  ld.shared.u32 %r15, [%r11];
  add.u32 %r15, %r15, %r14;
  st.shared.u32 [%r11], %r15;
skip:
  shr.u32 %r13, %r13, 1;
  setp.ne.u32 %p2, %r13, 0;
  @%p2 bra halve;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 ret;
  ld.shared.u32 %r15, [%r11];
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd3, %rd2, %rd3;
  st.global.u32 [%rd3], %r15;
  ret;
}
`

/** `(a, b, c, n)`: c = a + b. */
export const addPtx = `${entry('sm_70', 'add', { a: 'rd1', b: 'rd2', c: 'rd3', n: 'r7' }, { p: 2, r: 11, rd: 5 })}
  setp.ge.u32 %p1, %r1, %r7;
  @%p1 ret;
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd1, %rd1, %rd4;
  add.s64 %rd2, %rd2, %rd4;
  add.s64 %rd3, %rd3, %rd4;
  ld.global.u32 %r8, [%rd1];
  ld.global.u32 %r9, [%rd2];
  add.u32 %r10, %r8, %r9;
  st.global.u32 [%rd3], %r10;
  ret;
}
`

/**
 * `(in, n, own, flags, sums, rank, ranks, out)`: the blocks of all devices add up the data of each device. `own` holds
 * a count and a sum for this device. `flags` and `sums` hold a word for each device, in memory that all can reach. Each
 * block writes the total.
 */
export const sumEverywherePtx = `${entry('sm_70', 'sumEverywhere', { in: 'rd1', n: 'r7', own: 'rd2', flags: 'rd3', sums: 'rd4', rank: 'r11', ranks: 'r12', out: 'rd5' }, { p: 3, r: 20, rd: 10 })}${strided}
  red.relaxed.gpu.global.add.u32 [%rd2+4], %r8;
  bar.sync 0;
  setp.ne.u32 %p1, %r5, 0;
  @%p1 ret;
  // The barrier of the grid.
  fence.acq_rel.gpu;
  atom.acq_rel.gpu.global.add.u32 %r13, [%rd2], 1;
grid:
  ld.acquire.gpu.global.u32 %r13, [%rd2];
  setp.lt.u32 %p1, %r13, %r6;
  @%p1 bra grid;
  setp.ne.u32 %p1, %r3, 0;
  @%p1 bra devices;
  ld.relaxed.gpu.global.u32 %r14, [%rd2+4];
  mul.wide.u32 %rd6, %r11, 4;
  add.s64 %rd7, %rd4, %rd6;
  st.relaxed.sys.global.u32 [%rd7], %r14;
  add.s64 %rd7, %rd3, %rd6;
  st.release.sys.global.u32 [%rd7], 1;
devices:
  // The barrier of the devices.
  mov.u32 %r15, 0;
  mov.u32 %r16, 0;
device:
  mul.wide.u32 %rd6, %r15, 4;
  add.s64 %rd7, %rd3, %rd6;
wait:
  ld.acquire.sys.global.u32 %r17, [%rd7];
  setp.eq.u32 %p1, %r17, 0;
  @%p1 bra wait;
  add.s64 %rd7, %rd4, %rd6;
  ld.relaxed.sys.global.u32 %r17, [%rd7];
  add.u32 %r16, %r16, %r17;
  add.u32 %r15, %r15, 1;
  setp.lt.u32 %p2, %r15, %r12;
  @%p2 bra device;
  mul.wide.u32 %rd8, %r3, 4;
  add.s64 %rd8, %rd5, %rd8;
  st.global.u32 [%rd8], %r16;
  ret;
}
`

/**
 * `(in, n, out, share)`: counts each value. Each block of a cluster counts `share` values, at most 64, in its shared
 * memory for the whole cluster.
 */
export const histogramPtx = `${entry('sm_90', 'histogram', { in: 'rd1', n: 'r7', out: 'rd2', share: 'r8' }, { p: 3, r: 20, rd: 10 }, '.shared .align 4 .b8 counts[256];')}
  mov.u32 %r9, counts;
  shl.b32 %r10, %r5, 2;
  add.u32 %r10, %r9, %r10;
  setp.ge.u32 %p2, %r5, %r8;
  @%p2 bra cleared;
  st.shared.u32 [%r10], 0;
cleared:
  barrier.cluster.arrive;
  barrier.cluster.wait;
next:
  setp.ge.u32 %p1, %r1, %r7;
  @%p1 bra counted;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd3, %rd1, %rd3;
  ld.global.u32 %r11, [%rd3];
  div.u32 %r12, %r11, %r8;
  rem.u32 %r13, %r11, %r8;
  shl.b32 %r13, %r13, 2;
  add.u32 %r13, %r9, %r13;
  mapa.shared::cluster.u32 %r14, %r13, %r12;
  atom.relaxed.cluster.shared::cluster.add.u32 %r15, [%r14], 1;
  add.u32 %r1, %r1, %r2;
  bra next;
counted:
  barrier.cluster.arrive;
  barrier.cluster.wait;
  @%p2 ret;
  mov.u32 %r16, %cluster_ctarank;
  mad.lo.u32 %r16, %r16, %r8, %r5;
  mul.wide.u32 %rd4, %r16, 4;
  add.s64 %rd4, %rd2, %rd4;
  ld.shared.u32 %r17, [%r10];
  red.global.add.u32 [%rd4], %r17;
  ret;
}
`

/**
 * `(data, n, factor, summand)`: data = data * factor + summand. The kernel starts before the previous kernel in the
 * stream has ended.
 */
export const dependentPtx = `${entry('sm_90', 'dependent', { data: 'rd1', n: 'r7', factor: 'r8', summand: 'r9' }, { p: 2, r: 12, rd: 4 }, 'griddepcontrol.launch_dependents;')}
  griddepcontrol.wait;
  setp.ge.u32 %p1, %r1, %r7;
  @%p1 ret;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r10, [%rd3];
  mad.lo.u32 %r10, %r10, %r8, %r9;
  st.global.u32 [%rd3], %r10;
  ret;
}
`

/** `(matrix, x, y, n)`: y = matrix · x, one row per thread. */
export const productPtx = `${entry('sm_70', 'product', { matrix: 'rd1', x: 'rd2', y: 'rd3', n: 'r7' }, { p: 2, r: 10, f: 4, rd: 8 })}
  setp.ge.u32 %p1, %r1, %r7;
  @%p1 ret;
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd3, %rd3, %rd4;
  mul.lo.u32 %r8, %r1, %r7;
  mul.wide.u32 %rd4, %r8, 4;
  add.s64 %rd1, %rd1, %rd4;
  mov.f32 %f1, 0f00000000;
  mov.u32 %r9, 0;
next:
  ld.global.f32 %f2, [%rd1];
  ld.global.f32 %f3, [%rd2];
  fma.rn.f32 %f1, %f2, %f3, %f1;
  add.s64 %rd1, %rd1, 4;
  add.s64 %rd2, %rd2, 4;
  add.u32 %r9, %r9, 1;
  setp.lt.u32 %p1, %r9, %r7;
  @%p1 bra next;
  st.global.f32 [%rd3], %f1;
  ret;
}
`
