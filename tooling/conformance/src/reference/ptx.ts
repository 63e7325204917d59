/** The kernels of the list. Each has a property that its attributes report. */
const add = (name: string, directives: string, declarations = ''): string => `
.visible .entry ${name}(.param .u64 data, .param .u32 count, .param .u32 summand) ${directives}
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<6>;
  ${declarations}
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [summand];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r1;
  @%p1 bra done;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd2, %rd3;
  red.global.add.u32 [%rd4], %r2;
done:
  ret;
}
`

export const kernelNames = ['plain', 'bounded', 'exact', 'shared', 'constant', 'clustered'] as const

export const kernels = `.version 7.8
.target sm_90
.address_size 64
.const .align 4 .b8 table[1000];
${add('plain', '')}
${add('bounded', '.maxntid 128, 2, 1 .minnctapersm 3')}
${add('exact', '.reqntid 64, 1, 1')}
${add('shared', '', '.shared .align 16 .b8 block[20000];\n  mov.u32 %r7, block;\n  st.shared.u32 [%r7], %r7;')}
${add('constant', '', '.local .align 8 .b8 stack[136];\n  mov.u64 %rd5, table;\n  ld.const.u32 %r7, [%rd5+4];')}
${add('clustered', '.explicitcluster .reqnctapercluster 2, 1, 1')}
`
