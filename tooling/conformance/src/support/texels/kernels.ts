/** Kernels that read textures and use surfaces at given places. */

/** Operands of an instruction for the coordinates `{layer, x, y, z}`. */
const geometries = {
  '1d': '{%f1}',
  '2d': '{%f1, %f2}',
  '3d': '{%f1, %f2, %f3, %f3}',
  a1d: '{%r5, %f1}',
  a2d: '{%r5, %f1, %f2, %f2}',
  cube: '{%f1, %f2, %f3, %f3}',
  acube: '{%r5, %f1, %f2, %f3}',
} as const
export type Geometry = keyof typeof geometries

const head = `.version 7.8
.target sm_70
.address_size 64
`

/**
 * `(texture, places, out, n)`: writes the four words of a texel for each place of eight numbers (x, y, z, level,
 * layer). The `modifier` `level` uses the level of the place.
 */
export function samplePtx(
  geometry: Geometry,
  type: 'f32' | 'u32' | 's32',
  modifier: 'level' | 'gather' | '' = '',
): string {
  const registers = type === 'f32' ? '%f11, %f12, %f13, %f14' : '%r11, %r12, %r13, %r14'
  const opcode = modifier === 'gather' ? 'tld4.r' : modifier === 'level' ? 'tex.level' : 'tex'
  const level = modifier === 'level' ? ', %f4' : ''
  return `${head}
.visible .entry sample(.param .u64 texture, .param .u64 places, .param .u64 out, .param .u32 n) {
  .reg .b64 %rd<6>;
  .reg .f32 %f<16>;
  .reg .b32 %r<16>;
  .reg .pred %p<2>;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  ld.param.u32 %r6, [n];
  setp.ge.u32 %p1, %r4, %r6;
  @%p1 ret;
  ld.param.u64 %rd1, [texture];
  ld.param.u64 %rd2, [places];
  ld.param.u64 %rd3, [out];
  cvta.to.global.u64 %rd2, %rd2;
  cvta.to.global.u64 %rd3, %rd3;
  mul.wide.u32 %rd4, %r4, 32;
  add.s64 %rd2, %rd2, %rd4;
  mul.wide.u32 %rd5, %r4, 16;
  add.s64 %rd3, %rd3, %rd5;
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2];
  ld.global.f32 %f5, [%rd2+16];
  cvt.rzi.s32.f32 %r5, %f5;
  ${opcode}.${geometry}.v4.${type}.f32 {${registers}}, [%rd1, ${geometries[geometry]}]${level};
  st.global.v4.${type} [%rd3], {${registers}};
  ret;
}
`
}

/** `(texture, out, n, first)`: reads texels of four channels by index, starting at `first`. */
export const fetchPtx = `${head}
.visible .entry fetch(.param .u64 texture, .param .u64 out, .param .u32 n, .param .s32 first) {
  .reg .b64 %rd<5>;
  .reg .f32 %f<5>;
  .reg .b32 %r<8>;
  .reg .pred %p<2>;
  mov.u32 %r1, %tid.x;
  ld.param.u32 %r2, [n];
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 ret;
  ld.param.s32 %r3, [first];
  add.s32 %r4, %r1, %r3;
  ld.param.u64 %rd1, [texture];
  ld.param.u64 %rd2, [out];
  cvta.to.global.u64 %rd2, %rd2;
  mul.wide.u32 %rd3, %r1, 16;
  add.s64 %rd4, %rd2, %rd3;
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r4}];
  st.global.v4.f32 [%rd4], {%f1, %f2, %f3, %f4};
  ret;
}
`

const surfaceCoordinates = {
  '1d': '{%r5}',
  '2d': '{%r5, %r6}',
  '3d': '{%r5, %r6, %r7, %r7}',
  a2d: '{%r7, %r5, %r6, %r6}',
} as const
export type SurfaceGeometry = keyof typeof surfaceCoordinates

/**
 * `(surface, out, add)`: the grid is as large as the surface, or larger. Each thread reads the word at its place, which
 * is zero beyond the border, and the nearest word into the second word of `out`. It writes the word plus `add` if its
 * place exists.
 */
export function surfacePtx(geometry: SurfaceGeometry): string {
  const at = surfaceCoordinates[geometry]
  return `${head}
.visible .entry touch(.param .u64 surface, .param .u64 out, .param .u32 addend) {
  .reg .b64 %rd<5>;
  .reg .b32 %r<20>;
  ld.param.u64 %rd1, [surface];
  ld.param.u64 %rd2, [out];
  cvta.to.global.u64 %rd2, %rd2;
  ld.param.u32 %r1, [addend];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r6, %ctaid.y;
  mov.u32 %r7, %ctaid.z;
  mov.u32 %r3, %nctaid.x;
  mov.u32 %r4, %nctaid.y;
  shl.b32 %r5, %r2, 2;
  mad.lo.u32 %r8, %r7, %r4, %r6;
  mad.lo.u32 %r9, %r8, %r3, %r2;
  mul.wide.u32 %rd3, %r9, 8;
  add.s64 %rd4, %rd2, %rd3;
  suld.b.${geometry}.b32.zero {%r10}, [%rd1, ${at}];
  suld.b.${geometry}.b32.clamp {%r11}, [%rd1, ${at}];
  st.global.v2.u32 [%rd4], {%r10, %r11};
  add.u32 %r12, %r10, %r1;
  sust.b.${geometry}.b32.zero [%rd1, ${at}], {%r12};
  ret;
}
`
}

/** `(map, out)`: copies the 128 bytes of a tensor map as the kernel receives it. */
export const mapPtx = `${head}
.visible .entry bytes(.param .align 64 .b8 map[128], .param .u64 out) {
  .reg .b64 %rd<20>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
${Array.from({ length: 16 }, (_, at) => `  ld.param.u64 %rd2, [map+${at * 8}];\n  st.global.u64 [%rd1+${at * 8}], %rd2;`).join('\n')}
  ret;
}
`
