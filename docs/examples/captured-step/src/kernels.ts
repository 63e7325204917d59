/**
 * `descend` of each weight: weight -= rate * gradient. `gradients` of half the sum of (weight - target)² over the
 * devices; each device has its own targets.
 */
export const ptx = `.version 7.0
.target sm_70
.address_size 64

.visible .entry gradients(.param .u64 weights, .param .u64 targets, .param .u64 out, .param .u32 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [weights];
  ld.param.u64 %rd2, [targets];
  ld.param.u64 %rd3, [out];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  sub.rn.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
done:
  ret;
}

.visible .entry descend(.param .u64 weights, .param .u64 gradients, .param .f32 rate, .param .u32 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [weights];
  ld.param.u64 %rd2, [gradients];
  ld.param.f32 %f1, [rate];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %rd3, %r5, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  ld.global.f32 %f3, [%rd5];
  mul.rn.f32 %f4, %f1, %f3;
  sub.rn.f32 %f5, %f2, %f4;
  st.global.f32 [%rd4], %f5;
done:
  ret;
}
`
