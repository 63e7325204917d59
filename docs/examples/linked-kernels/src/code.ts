const head = `.version 8.0
.target sm_75
.address_size 64
`

/** Calls `apply`, which another source has, for every element. */
export const kernel = `${head}
.extern .func (.param .f32 result) apply(.param .f32 x);

.visible .entry map(.param .u64 data, .param .u32 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  .reg .f32 %f<3>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  { .param .f32 x;
    .param .f32 y;
    st.param.f32 [x], %f1;
    call.uni (y), apply, (x);
    ld.param.f32 %f2, [y]; }
  st.global.f32 [%rd4], %f2;
DONE:
  ret;
}
`

/** The choices: the text, the same computation in JavaScript, and the instructions from `%f1` to `%f2`. */
export const operations = {
  square: { text: 'x × x', compute: (x: number) => x * x, ptx: 'mul.rn.f32 %f2, %f1, %f1;' },
  double: { text: 'x + x', compute: (x: number) => x + x, ptx: 'add.rn.f32 %f2, %f1, %f1;' },
  negate: { text: '-x', compute: (x: number) => -x, ptx: 'neg.f32 %f2, %f1;' },
} as const

export type Operation = keyof typeof operations

/** The source of `apply`: the operation, and a number that is added. */
export function functionFor(operation: Operation, summand: number): string {
  const bits = new Uint32Array(Float32Array.of(summand).buffer)[0] as number
  return `${head}
.visible .func (.param .f32 result) apply(.param .f32 x) {
  .reg .f32 %f<4>;
  ld.param.f32 %f1, [x];
  ${operations[operation].ptx}
  add.rn.f32 %f3, %f2, 0f${bits.toString(16).padStart(8, '0').toUpperCase()};
  st.param.f32 [result], %f3;
  ret;
}
`
}
