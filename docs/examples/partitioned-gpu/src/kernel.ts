/** `whereabouts`: each block writes the multiprocessor that it runs on, and stays there for so many nanoseconds. */
export const ptx = `.version 7.0
.target sm_70
.address_size 64

.visible .entry whereabouts(.param .u64 out, .param .u64 nanoseconds) {
  .reg .pred %p<2>;
  .reg .b32 %r<3>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [nanoseconds];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u64 %rd3, %globaltimer;
  add.s64 %rd4, %rd3, %rd2;
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd5, %r1, 4;
  add.s64 %rd6, %rd1, %rd5;
  mov.u32 %r2, %smid;
  st.global.u32 [%rd6], %r2;
stay:
  mov.u64 %rd7, %globaltimer;
  setp.lt.u64 %p1, %rd7, %rd4;
  @%p1 bra stay;
  ret;
}
`
