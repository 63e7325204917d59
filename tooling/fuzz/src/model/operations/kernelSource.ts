/** Kernels of the model. They work on 32-bit words, so that the model knows every bit of their results. */
const head = '.version 8.0\n.target sm_90\n.address_size 64'

/** Puts the number of the thread into `%r4` and the number of threads into `%r5`. */
const thread = `
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mov.u32 %r5, %nctaid.x;
  mul.lo.u32 %r5, %r5, %r2;`

const registers = `
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .b64 %d<6>;`

/** A loop over all words, for any grid. \`body\` works on the word with the number in \`%r4\`. */
const eachWord = (count: string, body: string): string => `
  ld.param.u32 %r6, [${count}];
again:
  setp.ge.u32 %p0, %r4, %r6;
  @%p0 bra done;
${body}
  add.u32 %r4, %r4, %r5;
  bra again;
done:
  ret;`

export const kernelSource = `${head}
.visible .global .align 4 .u32 counter;

.visible .entry addEach(.param .u64 memory, .param .u32 value, .param .u32 count)
{${registers}${thread}
  ld.param.u64 %d1, [memory];
  cvta.to.global.u64 %d1, %d1;
  ld.param.u32 %r7, [value];${eachWord(
    'count',
    `  mad.wide.u32 %d2, %r4, 4, %d1;
  ld.global.u32 %r8, [%d2];
  add.u32 %r8, %r8, %r7;
  st.global.u32 [%d2], %r8;`,
  )}
}

.visible .entry combine(.param .u64 target, .param .u64 source, .param .u32 count)
{${registers}${thread}
  ld.param.u64 %d1, [target];
  cvta.to.global.u64 %d1, %d1;
  ld.param.u64 %d3, [source];
  cvta.to.global.u64 %d3, %d3;${eachWord(
    'count',
    `  mad.wide.u32 %d2, %r4, 4, %d1;
  mad.wide.u32 %d4, %r4, 4, %d3;
  ld.global.u32 %r7, [%d2];
  ld.global.u32 %r8, [%d4];
  mad.lo.u32 %r7, %r7, 3, %r8;
  st.global.u32 [%d2], %r7;`,
  )}
}

.visible .entry reverse(.param .u64 memory, .param .u32 count)
{${registers}${thread}
  .shared .align 4 .b32 words[1024];
  ld.param.u64 %d1, [memory];
  cvta.to.global.u64 %d1, %d1;
  ld.param.u32 %r6, [count];
  mul.lo.u32 %r7, %r1, %r2;
  sub.u32 %r7, %r6, %r7;
  min.u32 %r7, %r7, %r2;
  setp.ge.u32 %p0, %r4, %r6;
  mad.wide.u32 %d2, %r4, 4, %d1;
  mov.u32 %r8, words;
  mad.lo.u32 %r9, %r3, 4, %r8;
  @%p0 bra loaded;
  ld.global.u32 %r10, [%d2];
  st.shared.u32 [%r9], %r10;
loaded:
  bar.sync 0;
  @%p0 bra over;
  sub.u32 %r11, %r7, %r3;
  sub.u32 %r11, %r11, 1;
  mad.lo.u32 %r9, %r11, 4, %r8;
  ld.shared.u32 %r10, [%r9];
  st.global.u32 [%d2], %r10;
over:
  ret;
}

.visible .entry countThreads(.param .u32 count)
{${registers}${thread}
  ld.param.u32 %r6, [count];
  setp.ge.u32 %p0, %r4, %r6;
  @%p0 bra over;
  mov.u64 %d1, counter;
  atom.global.add.u32 %r8, [%d1], 1;
over:
  ret;
}

.visible .entry sample(.param .u64 texture, .param .u64 memory, .param .u32 width, .param .u32 count)
{${registers}${thread}
  ld.param.u64 %d1, [texture];
  ld.param.u64 %d3, [memory];
  cvta.to.global.u64 %d3, %d3;
  ld.param.u32 %r7, [width];${eachWord(
    'count',
    `  rem.u32 %r8, %r4, %r7;
  div.u32 %r9, %r4, %r7;
  tex.2d.v4.u32.s32 {%r10, _, _, _}, [%d1, {%r8, %r9}];
  mad.wide.u32 %d2, %r4, 4, %d3;
  st.global.u32 [%d2], %r10;`,
  )}
}

.visible .entry store(.param .u64 surface, .param .u64 memory, .param .u32 width, .param .u32 count)
{${registers}${thread}
  ld.param.u64 %d1, [surface];
  ld.param.u64 %d3, [memory];
  cvta.to.global.u64 %d3, %d3;
  ld.param.u32 %r7, [width];${eachWord(
    'count',
    `  rem.u32 %r8, %r4, %r7;
  shl.b32 %r8, %r8, 2;
  div.u32 %r9, %r4, %r7;
  mad.wide.u32 %d2, %r4, 4, %d3;
  ld.global.u32 %r10, [%d2];
  sust.b.2d.b32.trap [%d1, {%r8, %r9}], {%r10};`,
  )}
}
`
