import { casesOf } from '../corpus.js'
import { add, divide, even, f32, f64, fused, multiply, root } from '../real.js'

const { each } = casesOf('float')

const { fround } = Math
const minimum = (a: number, b: number): number => (Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math.min(a, b))
const maximum = (a: number, b: number): number => (Number.isNaN(a) ? b : Number.isNaN(b) ? a : Math.max(a, b))
const flag = (is: boolean, at = 0): number => (is ? 1 << at : 0)
const kinds = (a: number): number =>
  flag(Number.isNaN(a)) |
  flag(Math.abs(a) === Infinity, 1) |
  flag(Number.isFinite(a), 2) |
  flag(Object.is(a, -0) || a < 0, 3)

each('basic32', ['f32', 'f32'], 'f32', (a: number, b: number) => [a + b, a - b, a * b, a / b, Math.sqrt(Math.abs(a))])
each('fused32', ['f32', 'f32', 'f32'], 'f32', (a: number, b: number, c: number) => [
  fused(a, b, c, f32),
  fused(-a, b, c, f32),
])
each('roundedSums', ['f32', 'f32'], 'f32', (a: number, b: number) => [
  ...(['rz', 'ru', 'rd'] as const).map((mode) => add(a, b, f32, mode)),
  add(a, -b, f32, 'ru'),
])
each('roundedProducts', ['f32', 'f32'], 'f32', (a: number, b: number) =>
  (['rn', 'rz', 'ru', 'rd'] as const).map((mode) => multiply(a, b, f32, mode)),
)
each('roundedQuotients', ['f32', 'f32'], 'f32', (a: number, b: number) => [
  divide(a, b, f32),
  divide(a, b, f32, 'rz'),
  root(Math.abs(a), f32, 'ru'),
  divide(1, b, f32, 'rd'),
])
each('basic64', ['f64', 'f64'], 'f64', (a: number, b: number) => [a + b, a - b, a * b, a / b, Math.sqrt(Math.abs(a))])
each('fused64', ['f64', 'f64', 'f64'], 'f64', (a: number, b: number, c: number) => [fused(a, b, c, f64)])
each('extremesFloat', ['f32', 'f32'], 'f32', (a: number, b: number) => [
  minimum(a, b),
  maximum(a, b),
  a > 0 ? Math.min(a, 1) : 0,
  Math.abs(b),
])
each('comparisons', ['f32', 'f32'], 'i32', (a: number, b: number) => [
  flag(a < b) |
    flag(a <= b, 1) |
    flag(a === b, 2) |
    flag(a !== b, 3) |
    flag(a > b, 4) |
    flag(a >= b, 5) |
    flag(!(a < b), 6) |
    flag(!(a >= b), 7),
])
each('classes', ['f32', 'f64'], 'i32', (a: number, b: number) => [kinds(a), kinds(b)], {
  // The sign of a NaN is not defined here.
  values: (random) =>
    [
      [0, -0, 1, -2.5, Infinity, -Infinity, 2 ** -140],
      [0, -0, 1e300, -1e-310, Infinity, -Infinity],
    ].map((list) => random.pick(list)),
})
each(
  'rounding32',
  ['f32'],
  'f32',
  (a: number) => [
    ...[Math.floor(a), Math.ceil(a), Math.trunc(a), even(a)],
    Math.sign(a) * Math.floor(Math.abs(a) + 0.5) || (a === 0 || Number.isNaN(a) ? a : Math.sign(a) * 0),
  ],
  {
    values: (random) => [
      fround(random.pick([random.real(-100, 100), random.integer(-50, 50) / 2, 2 ** 24 + 2, -0, Infinity, NaN])),
    ],
  },
)
each('rounding64', ['f64'], 'f64', (a: number) => [Math.floor(a), Math.ceil(a), Math.trunc(a), even(a)])
each(
  'remainders',
  ['f32', 'f32'],
  'f32',
  (a: number, b: number) => [a % b, b < 0 || Object.is(b, -0) ? -Math.abs(a) : Math.abs(a)],
  {
    values: (random) => [
      fround(random.real(-1e4, 1e4)),
      fround(random.pick([random.real(-100, 100), 0.5, -3, 1e-3, Infinity])),
    ],
  },
)
each(
  'exponents',
  ['f32'],
  'f32',
  (a: number) => {
    const exponent = a === 0 ? 0 : Math.floor(Math.log2(Math.abs(a))) + 1
    return [a / 2 ** exponent, exponent, a * 8]
  },
  { values: (random) => [fround(random.pick([0, -1, 2 ** -100 * 1.25, random.real(-1e6, 1e6), random.real(0, 1)]))] },
)

// The errors that the programming guide documents, in units of the last place.
each('powers32', ['f32'], 'f32', (a: number) => [Math.exp(a), 2 ** a, 10 ** a, Math.expm1(a)], {
  ulp: [2, 2, 2, 1],
  values: (random) => [fround(random.real(-30, 30))],
})
each('logarithms32', ['f32'], 'f32', (a: number) => [Math.log(a), Math.log2(a), Math.log10(a), Math.log1p(a)], {
  ulp: [1, 1, 2, 1],
  values: (random) => [fround(random.pick([random.real(0, 10), random.real(0, 1e9), 2 ** random.integer(-100, 100)]))],
})
each('circular32', ['f32'], 'f32', (a: number) => [Math.sin(a), Math.cos(a), Math.tan(a)], {
  ulp: [2, 2, 4],
  values: (random) => [fround(random.pick([random.real(-4, 4), random.real(-1e4, 1e4), random.real(-1e7, 1e7)]))],
})
each('inverse32', ['f32'], 'f32', (a: number) => [Math.asin(a), Math.acos(a), Math.atan(a)], {
  ulp: [2, 2, 2],
  values: (random) => [fround(random.real(-1, 1))],
})
each('hyperbolic32', ['f32'], 'f32', (a: number) => [Math.sinh(a), Math.cosh(a), Math.tanh(a)], {
  ulp: [3, 2, 2],
  values: (random) => [fround(random.real(-20, 20))],
})
each('roots32', ['f32'], 'f32', (a: number) => [1 / Math.sqrt(a), Math.cbrt(a)], {
  ulp: [2, 1],
  values: (random) => [fround(random.pick([random.real(0, 100), random.real(0, 1e-30), 1e30]))],
})
each('powers2', ['f32', 'f32'], 'f32', (a: number, b: number) => [a ** b, Math.hypot(a, b), Math.atan2(a, b)], {
  ulp: [4, 3, 3],
  values: (random) => [fround(random.real(0, 20)), fround(random.real(-10, 10))],
})
// The documented error is 2 + 1.173 |x| for the exponential, and absolute for the others.
each('fast32', ['f32'], 'f32', (a: number) => [Math.exp(a), Math.log(a + 8), Math.sin(a), Math.cos(a)], {
  ulp: [6, 3, 8, 8],
  scale: 1,
  values: (random) => [fround(random.integer(-24, 24) / 8)],
})
each(
  'functions64',
  ['f64'],
  'f64',
  (a: number) => [Math.exp(a), Math.log(Math.abs(a)), Math.sin(a), Math.cos(a), Math.tanh(a), Math.atan(a)],
  {
    ulp: [2, 2, 3, 3, 3, 3],
    values: (random) => [random.real(-20, 20)],
  },
)
each('powers64', ['f64', 'f64'], 'f64', (a: number, b: number) => [Math.abs(a) ** b, Math.hypot(a, b), Math.cbrt(a)], {
  ulp: [3, 3, 2],
  values: (random) => [random.real(-20, 20), random.real(-10, 10)],
})
